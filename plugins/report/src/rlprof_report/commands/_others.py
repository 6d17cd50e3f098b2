"""Other live runs than the one shown; separate, as commands that show one run share it."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from rlprof.errors import RunError
from rlprof_report._plain import argument
from rlprof_run import find_runs, named, read

if TYPE_CHECKING:
    from pathlib import Path

_SILENT_S = 60
"""A live process writes more often."""


def name_others(command: str, asked: str, shown: Path) -> None:
    """Note on stderr which other runs are live, if *asked* is a folder of runs."""
    folder = named(asked)
    if folder == shown or not folder.is_dir():
        return
    live = [path for path in find_runs(folder) if path != shown and _is_live(path)]
    if live:
        count = "another run is live" if len(live) == 1 else f"{len(live)} others are live"
        how = f"rlprof {command} {argument(live[-1])}"
        print(f"rlprof: {shown} is the latest run; {count}: {how}", file=sys.stderr)


def _is_live(path: Path) -> bool:
    with suppress(OSError, RunError):  # it has just been removed, or is damaged
        written = max((file.stat().st_mtime for file in path.glob("manifest/*.jsonl")), default=0.0)
        return time.time() - written < _SILENT_S and read(path).is_running
    return False
