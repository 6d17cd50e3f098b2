"""The folder that `msprof-analyze cluster` is told: all ranks of one role, and of nobody else.

It knows ranks by number alone, and of those with one number below its folder it takes the newest.
So roles recorded in one window would hide each other there. Each rank's export puts its tables
into a folder of its role's, under the name of its own folder: no rank writes where another does.

Hard links: they cost no room, are files for whoever moves, copies or collects a run, and unlike
symbolic ones they are looked into by all that walks a folder.
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
"""Large, and of no use to an analysis of a cluster."""


def join(capture: Capture, out: Path, tree: str, kept: Iterable[str]) -> tuple[str, str]:
    """Put the files *kept* of the folder *tree* below *out* where the role's are.

    Return the command that looks at them all, and what went wrong. An engine's replica has a folder
    of its own already. Raw data are left where they are: so is what an analysis makes of them.
    """
    window, target = capture.window.folder, capture.target
    files = [Path(one) for one in kept]
    own = Path(window, target.folder, capture.tool)
    is_analysed = any(OUTPUT in file.parts for file in files)
    if target.replica is not None:
        return f"{_COMMAND}/{window}/{target.folder}", ""
    if not is_analysed or out.parts[-len(own.parts) :] != own.parts:
        return f"{_COMMAND}/{window}", ""
    home = f"{window}/{safe_name(target.role)}_npu_cluster"
    there = out.parents[len(own.parts) - 1] / home / tree
    problem = ""
    if there.parent.is_symlink() or there.is_symlink():
        problem = f"this rank is not in {home}: a symbolic link is there, which may lead elsewhere"
        return f"{_COMMAND}/{home}", problem
    try:
        shutil.rmtree(there, ignore_errors=True)  # of an export that was not finished
        for file in files:
            if file.name != _UNREAD:
                _join_file(out / tree / file, there / file)
    except OSError as exc:
        problem = f"this rank is not, or not whole, in {home}: {exc.strerror or exc}"
    return f"{_COMMAND}/{home}", problem


def _join_file(file: Path, there: Path) -> None:
    there.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, there)
    except OSError:  # a file system without hard links
        shutil.copyfile(file, there)
