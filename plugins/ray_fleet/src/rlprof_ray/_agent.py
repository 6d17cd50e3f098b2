"""The agent on a node while its part of a run is collected: it lists, reads, hashes and removes.

It is a separate actor, started when there are files to collect and ended afterwards.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rlprof import Run

PIECE = 96 << 10
"""Ray sends up to 100 kB inside its answer. Larger data goes through the object store, which the
trainer needs, and whose pages then count as the driver's."""
PIECES = 20
"""One call returns this many, each as an answer: twice as fast as one call for each."""
JOURNALS = ("counters", "spans", "manifest")
"""The folders of files that grow, the manifests last: they name the other files."""
_STEP = re.compile(r"step_\d{6,19}", re.ASCII)
_FRESH_S = 60
"""A process without a manifest that wrote within this time may still write."""


@attrs.frozen
class Item:
    """One file on a node."""

    path: str
    """Relative to the run folder."""
    size: int
    mtime_ns: int
    why_not: str = ""
    """Why it must not be moved now."""
    stays: bool = False
    """The file is copied but stays: its node still needs it."""


class Agent:
    """Reads the run folder *folder* of its node."""

    def __init__(self, folder: str, run_id: str, attempt: int) -> None:
        self._folder = Path(folder)
        self._run = run_id, attempt
        with suppress(OSError):
            os.nice(10)  # let a job that trains there now run first

    def inventory(self, sign: str) -> tuple[list[Item], str]:
        """List the files of the run, and say why some stay; raise RunError if it is another run.

        Where *sign* exists, the folder is the driver's run folder, and nothing is to be collected.
        """
        import rlprof
        from rlprof_run.salvage import candidates

        if (self._folder / sign).exists():
            return [], ""
        if not self._folder.is_dir():
            raise OSError(f"{self._folder} is not there any more")
        run = rlprof.read(self._folder)
        if (run.run_id, run.attempt) != self._run:
            raise rlprof.RunError(f"{self._folder}: belongs to another run, {run.run_id}")
        waits = sum(Path(one.scratch).is_dir() for one in candidates(run))
        writer = _writer(run)
        found = []
        for folder in _parts(self._folder):
            stays = waits > 0 and folder.name == "manifest"
            for file in sorted(folder.rglob("*")):
                if not file.is_symlink() and not file.is_file():
                    continue
                status = file.lstat()
                why = "is a link, not a file" if file.is_symlink() else writer
                path = str(file.relative_to(self._folder))
                found.append(Item(path, status.st_size, status.st_mtime_ns, why, stays))
        unsaved = f"captures that were not exported: {waits}; there: rlprof salvage {self._folder}"
        return found, f"{unsaved}, then collect again" if waits else ""

    def read(self, path: str, offset: int) -> list[bytes]:
        """Return the next pieces of a file; those after its end are empty."""
        with (self._folder / path).open("rb") as stream:
            stream.seek(offset)
            return [stream.read(PIECE) for _ in range(PIECES)]

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file."""
        return sha256(self._folder / path)

    def remove(self, item: Item) -> None:
        """Remove a collected file; raise OSError if it differs from the copy."""
        file = self._folder / item.path
        found = file.lstat()
        if (found.st_size, found.st_mtime_ns) != (item.size, item.mtime_ns):
            raise OSError("another process has written to it since")
        file.unlink()

    def tidy(self) -> None:
        """Remove folders that are empty now, and the run folder if nothing is left."""
        for part in _parts(self._folder):
            for inner, _, _ in os.walk(part, topdown=False):
                _rmdir(Path(inner))
        if [entry.name for entry in self._folder.iterdir()] != ["run.json"]:
            return
        (self._folder / "run.json").unlink()
        _rmdir(self._folder)
        for above in list(self._folder.parents)[:2]:  # <node>/<run id>/attempt_2
            if above.name in (self._run[0], _own_node()):
                _rmdir(above)


def sha256(file: Path) -> str:
    """Return the SHA-256 of *file*."""
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def _parts(root: Path) -> list[Path]:
    """Return the folders with files of the run; those of steps first."""
    steps = sorted(entry for entry in root.iterdir() if _STEP.fullmatch(entry.name))
    return [part for part in (*steps, *(root / name for name in JOURNALS)) if part.is_dir()]


def _writer(run: Run) -> str:
    """Say which process still writes into the folder; empty: none does."""
    for process in run.processes:
        if process.state == "running":
            return f"{process.target} (pid {process.here.pid}) still writes"
    known = {process.name for process in run.processes}
    for file in (run.path / "manifest").glob("*.jsonl"):
        is_odd = file.stem not in known and not file.name.startswith("+")
        if is_odd and time.time() - file.stat().st_mtime < _FRESH_S:
            return f"{file.stem} may still write"
    return ""


def _own_node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())[:8]


def _rmdir(folder: Path) -> None:
    with suppress(OSError):  # it is not empty
        folder.rmdir()
