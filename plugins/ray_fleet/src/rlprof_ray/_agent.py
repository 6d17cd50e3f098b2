"""The agent on a node while its part of a run is collected: it lists, reads and removes.

It is a separate actor, started when there are files to collect and ended afterwards.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import attrs

PIECE = 96 << 10
"""Ray sends up to 100 kB inside its answer. Larger data goes through the object store, which the
trainer needs, and whose pages then count as the driver's."""
PIECES = 20
"""One call returns this many, each as an answer: twice as fast as one call for each."""
_PARTS = ("step_*", "counters", "spans", "manifest")
"""The folders of a run; the manifests last: they name the other files."""


@attrs.frozen
class Item:
    """One file on a node."""

    path: str
    """Relative to the run folder."""
    size: int
    mtime_ns: int


class Agent:
    """Reads the run folder *folder* of its node."""

    def __init__(self, folder: str, run_id: str, attempt: int) -> None:
        self._folder = Path(folder)
        self._run = run_id, attempt
        os.nice(10)  # a job that trains there now runs first

    def inventory(self, sign: str) -> tuple[list[Item], str]:
        """List the files of the run, and say why they must stay; raise OSError if none may come.

        Where *sign* exists, the folder is the driver's run folder, and nothing is to be collected.
        """
        import rlprof
        from rlprof_run.salvage import candidates

        if (self._folder / sign).exists():
            return [], ""
        run = rlprof.read(self._folder)
        if (run.run_id, run.attempt) != self._run:
            raise OSError(f"{self._folder}: belongs to another run, {run.run_id}")
        for process in run.processes:
            if process.state == "running":
                raise OSError(f"{process.target} (pid {process.here.pid}) still writes")
        items = []
        for file in (file for part in _PARTS for file in sorted(self._folder.glob(f"{part}/**/*"))):
            if file.is_file() and not file.is_symlink():
                found, path = file.stat(), str(file.relative_to(self._folder))
                items.append(Item(path, found.st_size, found.st_mtime_ns))
        waits = sum(Path(one.scratch).is_dir() for one in candidates(run))
        unsaved = f"captures that were not exported: {waits}; there: rlprof salvage {self._folder}"
        return items, f"{unsaved}, then collect again" if waits else ""

    def read(self, path: str, offset: int) -> list[bytes]:
        """Return the next pieces of a file; those after its end are empty."""
        with (self._folder / path).open("rb") as stream:
            stream.seek(offset)
            return [stream.read(PIECE) for _ in range(PIECES)]

    def remove(self, item: Item) -> None:
        """Remove a collected file; raise OSError if it differs from the copy."""
        file = self._folder / item.path
        found = file.lstat()
        if (found.st_size, found.st_mtime_ns) != (item.size, item.mtime_ns):
            raise OSError("another process has written to it since")
        file.unlink()

    def tidy(self) -> None:
        """Remove folders that are empty now, and the run folder if nothing is left."""
        for inner, _, _ in os.walk(self._folder, topdown=False):
            with suppress(OSError):  # it is not empty
                Path(inner).rmdir()
        if os.listdir(self._folder) == ["run.json"]:  # noqa: PTH208 -- names are enough
            (self._folder / "run.json").unlink()
            self._folder.rmdir()
            with suppress(OSError):  # the folder of this node, or of all attempts
                self._folder.parent.rmdir()
