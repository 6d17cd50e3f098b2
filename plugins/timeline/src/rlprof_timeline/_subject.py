"""What is looked at: a trace file, or the timeline of a run, made if there is none yet."""

from __future__ import annotations

import shlex
import tarfile
import zipfile
from typing import TYPE_CHECKING

from rlprof.errors import RlprofError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TIMELINE = "exports/timeline.json.gz"
_ARCHIVES = (".tar", ".zip")
_ENDINGS = (".json", ".gz", ".pftrace", ".perfetto-trace", *_ARCHIVES)
_UNPACKED = 10
"""Times the size of a trace in gzip. Its last four bytes say the size of the last member only, and
a timeline has many."""


def subject(path: Path) -> Path:
    """Return the file that is meant by *path*, which may have to be made first."""
    if path.is_dir():
        return path / _TIMELINE
    if not path.exists():
        raise RlprofError(f"{path}: is not there; name a run folder or a trace file")
    if not path.is_file() or not path.name.lower().endswith(_ENDINGS):
        endings = ", ".join(_ENDINGS)
        raise RlprofError(
            f"{path}: is no trace by its name; name a run folder, or one of {endings}"
        )
    if not path.stat().st_size:
        raise RlprofError(f"{path}: is empty; whoever wrote it may have been killed: export anew")
    return path


def make(run: Path) -> int:
    """Export the timeline of *run* as one does by hand; return the exit code."""
    from rlprof_cli import main  # core's commands, of which this one is none

    return main(["export", "--to", "timeline", "--", str(run)])


def is_older(file: Path, run: Path) -> bool:
    """Whether *run* has been written to since *file* was made."""
    written = [line.stat().st_mtime_ns for line in (run / "manifest").glob("*")]
    return max(written, default=0) > file.stat().st_mtime_ns


def command(run: Path) -> str:
    """Return the command that makes the timeline of *run*, to be typed."""
    return f"rlprof export {shlex.quote(str(run))} --to timeline"


def unpacked(file: Path) -> int:
    """Return about how many bytes a viewer will have to read, without unpacking anything."""
    return sum(
        size * (_UNPACKED if name.lower().endswith((".gz", ".tgz")) else 1)
        for name, size in _members(file)
    )


def _members(file: Path) -> Iterator[tuple[str, int]]:
    try:
        if file.suffix == ".tar":
            with tarfile.open(file, "r:") as archive:
                yield from [(member.name, member.size) for member in archive]
            return
        if file.suffix == ".zip":
            with zipfile.ZipFile(file) as packed:
                yield from [(member.filename, member.file_size) for member in packed.infolist()]
            return
    except (OSError, tarfile.TarError, zipfile.BadZipFile):
        pass  # the viewer will say what is wrong with it
    yield file.name, file.stat().st_size
