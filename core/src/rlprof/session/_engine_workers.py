"""Waits at the end of a session for the processes of its engines.

They see in its manifest that it has ended, finish their exports and close their own sessions. If
the engine is shut down earlier, they die with it.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from rlprof.rundir import Here, is_alive, last_event
from rlprof.rundir._fields import known
from rlprof.types import safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from rlprof.types import Target

_LOOK_S = 0.1
_SILENT_S = 5
"""Log what the session waits for after this many seconds."""


def worker_name(name: str, target: Target) -> str:
    """Name the files of an engine's process, which may be a process with a session of its own."""
    return f"{name}-replica{target.replica}-worker{target.worker}"


def await_workers(
    folder: Path, engines: Iterable[Target], within_s: float, say: Callable[[str], object]
) -> list[str]:
    """Wait until the processes of *engines* have closed their sessions; name those that did not.

    If that takes long, *say* it once.
    """
    waiting = [
        file
        for target in engines
        for file in (folder / "manifest").glob(
            f"{safe_name(target.role)}-*-replica{target.replica}-worker*.jsonl"
        )
    ]
    began = time.monotonic()
    has_said = False
    while True:
        waited_s = time.monotonic() - began
        waiting = [file for file in waiting if _goes_on(file)]
        if not waiting or waited_s > within_s:
            return [file.stem for file in waiting]
        if waited_s > _SILENT_S and not has_said:
            has_said = True
            names = ", ".join(file.stem for file in waiting)
            say(f"waits up to {within_s:g} s for the exports of {names}")
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
