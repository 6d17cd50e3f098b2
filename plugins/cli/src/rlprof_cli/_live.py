"""Finding the live run at a path."""

from __future__ import annotations

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
            raise RunError(
                f"{path}: the run has ended, so no process can be asked; name a live run"
            )
        return recorded
    found = []
    for folder in find_runs(path):
        try:
            run = read(folder)
        except RunError:  # not a run, or removed meanwhile
            continue
        if run.is_running:
            found.append(run)
    if len(found) == 1:
        return found[0]
    if not found:
        raise RunError(f"{path}: holds no live run; name the folder of a live run")
    names = ", ".join(str(run.path) for run in found)
    raise RunError(f"{path}: holds several live runs; name one of them: {names}")
