"""Finding the live run at a path."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rlprof.errors import RunError
from rlprof_run import find_runs, read

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof_run import Run


def the_live_run(path: Path) -> Run:
    """Return the run at *path*, or the only live run in the folder of runs *path*."""
    if (path / "run.json").exists() or not path.is_dir():
        recorded = read(path)
        if not recorded.is_running:
            over = _over(recorded)
            raise RunError(f"{path}: the run {over}, so no process can be asked; name a live run")
        return recorded
    found, over = [], "none has opened yet"
    for folder in find_runs(path):
        try:
            run = read(folder)
        except RunError:  # not a run, or removed meanwhile
            continue
        if run.is_running:
            found.append(run)
        over = f"the latest, {run.run_id}, {_over(run)}, and no newer one has opened yet"
    if len(found) == 1:
        return found[0]
    if not found:
        raise RunError(f"{path}: holds no live run: {over}; name the folder of a live run")
    names = ", ".join(str(run.path) for run in found)
    raise RunError(f"{path}: holds several live runs; name one of them: {names}")


def _over(run: Run) -> str:
    """Say that a run has ended, and when it gave its last sign of life."""
    last_ns = max((one.clocks[-1].realtime_ns for one in run.processes if one.clocks), default=0)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(last_ns / 1e9))
    return f"{run.state} at {when}" if last_ns else "has no process yet"
