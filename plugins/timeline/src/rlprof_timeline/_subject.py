"""The file to view: a trace, or the timeline of a run, made if there is none yet."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rlprof.errors import RlprofError

if TYPE_CHECKING:
    from pathlib import Path

_TIMELINE = "exports/timeline.json.gz"
_ENDINGS = (".json", ".gz", ".pftrace", ".perfetto-trace", ".tar", ".zip")
_UNPACKED = 10
"""The size of a trace is about this times its size in gzip. The last four bytes of a gzip file have
the size of the last member only, and a timeline has many."""


def subject(path: Path) -> Path:
    """Return the file for *path*; it may have to be made first."""
    if path.is_dir():
        return path / _TIMELINE
    if not path.exists():
        raise RlprofError(f"{path}: is not there; name a run folder or a trace file")
    if not path.is_file() or not path.name.lower().endswith(_ENDINGS):
        endings = ", ".join(_ENDINGS)
        raise RlprofError(
            f"{path}: is not named like a trace; name a run folder, or one of {endings}"
        )
    if not path.stat().st_size:
        raise RlprofError(f"{path}: is empty; its writer may have been killed: export it again")
    return path


def make(run: Path) -> int:
    """Export the timeline of *run* as `rlprof export` does; return the exit code."""
    from rlprof_cli import main  # this command is not one of these

    return main(["export", "--to", "timeline", "--", str(run)])


def is_older(file: Path, run: Path) -> bool:
    """Whether *run* was written to after *file* was made."""
    written = [line.stat().st_mtime_ns for line in (run / "manifest").glob("*")]
    return max(written, default=0) > file.stat().st_mtime_ns


def command(run: Path) -> str:
    """Return the command line that makes the timeline of *run*."""
    return f"rlprof export {shlex.quote(str(run))} --to timeline"


def unpacked(file: Path) -> int:
    """Estimate the bytes that a viewer has to read, without unpacking the file."""
    return file.stat().st_size * (_UNPACKED if file.suffix == ".gz" else 1)
