"""Finding the run that is meant by a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof.errors import RunError
from rlprof_run import find_runs, read

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof_run import Run


def the_live_run(path: Path) -> Run:
    """Return the run at *path*, or the one that is going on in the folder of runs *path*."""
    if (path / "run.json").exists() or not path.is_dir():
        recorded = read(path)
        if not recorded.is_running:
            raise RunError(
                f"{path}: the run is over, so there is nobody to ask; name a run that is going on"
            )
        return recorded
    found = []
    for folder in find_runs(path):
        try:
            run = read(folder)
        except RunError:  # not one of ours, or no longer
            continue
        if run.is_running:
            found.append(run)
    if len(found) == 1:
        return found[0]
    if not found:
        raise RunError(f"{path}: no run is going on here; name the folder of one that is")
    names = ", ".join(str(run.path) for run in found)
    raise RunError(f"{path}: several runs are going on here; name one of them: {names}")
