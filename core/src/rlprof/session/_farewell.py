"""The end of a session whose engines have processes of their own: they are waited for.

They see by its manifest that it has ended, finish their exports and close theirs. An engine that is
shut down before that takes them along.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from rlprof.rundir import Here, is_alive, last_event
from rlprof.rundir._fields import known
from rlprof.types import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rlprof.types import Target

_LOOK_S = 0.1


def worker_name(name: str, target: Target) -> str:
    """Name the files of an engine's process: a session of its own may be in the same one."""
    return f"{name}-worker{target.worker}of{target.replica}"


def await_workers(folder: Path, engines: Iterable[Target], within_s: float) -> list[str]:
    """Wait until the processes of *engines* have closed their sessions; name those that did not."""
    waiting = [
        file
        for target in engines
        for file in (folder / "manifest").glob(
            f"{safe_name(target.role)}-*-worker*of{target.replica}.jsonl"
        )
    ]
    deadline = time.monotonic() + within_s
    while True:
        waiting = [file for file in waiting if _goes_on(file)]
        if not waiting or time.monotonic() > deadline:
            return [file.stem for file in waiting]
        time.sleep(_LOOK_S)


def _goes_on(file: Path) -> bool:
    try:
        if last_event(file) == "ended":
            return False
        with file.open("rb") as lines:
            first = json.loads(lines.readline())
        return is_alive(known(Here, first["here"])) is not False
    except (OSError, ValueError, KeyError, TypeError):
        return False
