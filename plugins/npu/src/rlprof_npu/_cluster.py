"""The folder for `msprof-analyze cluster`: all ranks of one role, and no others.

`msprof-analyze` knows ranks by number alone, and takes the newest of those with one number. So
two roles of one window would hide each other, and each role has a folder of its own. Each rank's
export puts its tables there under the name of its own folder, as hard links: these take no space
and survive a move of the run.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rlprof.types import safe_name
from rlprof_npu._raw import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof import Capture

_COMMAND = "msprof-analyze cluster -d {run}"
_UNREAD = "trace_view.json"
"""Large files that a cluster analysis does not need."""


def join(capture: Capture, out: Path, tree: str, kept: Iterable[str]) -> tuple[str, str]:
    """Link the files *kept* of the folder *tree* below *out* into the folder of the role.

    Return the command for that folder, and what went wrong. An engine's replica already has a
    folder of its own. Raw data stay where they are.
    """
    window, target = capture.window.folder, capture.target
    files = [Path(one) for one in kept]
    own = Path(window, target.folder, capture.tool)
    if target.replica is not None:
        return f"{_COMMAND}/{window}/{target.folder}", ""
    is_analysed = any(OUTPUT in file.parts for file in files)
    if not is_analysed or out.parts[-len(own.parts) :] != own.parts:
        return f"{_COMMAND}/{window}", ""
    home = f"{window}/{safe_name(target.role)}_npu_cluster"
    there = out.parents[len(own.parts) - 1] / home / tree
    problem = ""
    try:
        shutil.rmtree(there, ignore_errors=True)  # of an export that did not finish
        for file in files:
            if file.name != _UNREAD:
                _link(out / tree / file, there / file)
    except OSError as exc:
        problem = f"this rank is missing or incomplete in {home}: {exc.strerror or exc}"
    return f"{_COMMAND}/{home}", problem


def _link(file: Path, there: Path) -> None:
    there.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, there)
    except OSError:  # a file system without hard links
        shutil.copyfile(file, there)
