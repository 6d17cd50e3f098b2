"""The agent on a node while its part of a run is collected: it lists, reads, hashes and removes.

It is a separate actor, started when there are files to collect and ended afterwards. It reads and
removes only files of a run, in the run folder of this run, whoever calls it.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rlprof_ray import _paths

if TYPE_CHECKING:
    from rlprof import Run

PIECE = 96 << 10
"""Ray sends up to 100 kB inside its answer. Larger data goes through the object store, which the
trainer needs, and whose pages then count as the driver's."""
PIECES = 20
"""One call returns this many, each as an answer: twice as fast as one call for each."""
_BLOCK = 1 << 20
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


@attrs.frozen
class Inventory:
    """The files of a run on a node."""

    items: tuple[Item, ...]
    note: str = ""
    """Why files stay, although all were collected."""


class Agent:
    """Reads run folders of its node."""

    def __init__(self, run_id: str, attempt: int) -> None:
        self._run = run_id, attempt
        with suppress(OSError):
            os.nice(10)  # let a job that trains there now run first

    def sees(self, path: str) -> bool:
        """Whether *path* exists: then the run folder at home is this one."""
        return Path(path).exists()

    def inventory(self, folder: str) -> Inventory:
        """List the files in *folder*; raise RunError if it is not a folder of this run."""
        from rlprof_run.salvage import candidates

        if not Path(folder).is_dir():
            raise OSError(f"{folder} is not there any more")
        run = self._checked(folder)
        waits = [one for one in candidates(run) if Path(one.scratch).is_dir()]
        stays = "manifest/" if waits else "\0"
        writers = _writers(run)
        items = tuple(
            attrs.evolve(item, stays=item.path.startswith(stays))
            for item in _items(run.path, writers)
        )
        return Inventory(items, _unsaved(len(waits), folder) if waits else "")

    def read(self, folder: str, path: str, offset: int) -> list[bytes]:
        """Return the next pieces of a file; those after its end are empty."""
        from rlprof.rundir import open_regular

        with open_regular(self._file(folder, path), follow=False) as stream:
            stream.seek(offset)
            return [stream.read(PIECE) for _ in range(PIECES)]

    def digest(self, folder: str, path: str, size: int) -> str:
        """Return the SHA-256 of the first *size* bytes of a file."""
        from rlprof.rundir import open_regular

        found = hashlib.sha256()
        with open_regular(self._file(folder, path), follow=False) as stream:
            while size > 0 and (block := stream.read(min(_BLOCK, size))):
                found.update(block)
                size -= len(block)
        return found.hexdigest()

    def remove(self, folder: str, item: Item) -> None:
        """Remove a collected file; raise OSError if it differs from the copy."""
        file = self._file(folder, item.path)
        found = file.lstat()
        if (found.st_size, found.st_mtime_ns) != (item.size, item.mtime_ns):
            raise OSError("another process has written to it since")
        file.unlink()

    def tidy(self, folder: str) -> None:
        """Remove folders that are empty now, and the run folder if nothing is left."""
        run = self._checked(folder)
        if _writers(run):
            return
        root = Path(folder)
        for part in [entry for entry in os.scandir(root) if _paths.is_part(entry.name)]:
            for inner, _, _ in os.walk(part.path, topdown=False):
                _rmdir(Path(inner))
        if {entry.name for entry in os.scandir(root)} != {"run.json"}:
            return
        (root / "run.json").unlink()
        _rmdir(root)
        for above in list(root.parents)[:2]:  # <node>/<run id>/attempt_2
            if above.name in (self._run[0], _own_node()):
                _rmdir(above)

    def _file(self, folder: str, path: str) -> Path:
        why = _paths.why_not(path)
        if why:
            raise OSError(why)
        return Path(folder, path)

    def _checked(self, folder: str) -> Run:
        import rlprof

        run = rlprof.read(folder)
        if (run.run_id, run.attempt) != self._run:
            raise rlprof.RunError(f"{folder}: belongs to another run, {run.run_id}")
        return run


def _items(root: Path, writers: dict[str, str]) -> list[Item]:
    found = []
    for where, folders, _ in os.walk(root):
        if Path(where) == root:
            folders[:] = [name for name in folders if _paths.is_part(name)]
            continue
        for entry in os.scandir(where):
            with suppress(FileNotFoundError):  # it has just been removed
                if not entry.is_dir(follow_symlinks=False):
                    found.append(_item(entry, os.path.relpath(entry.path, root), writers))
    return found


def _item(entry: os.DirEntry[str], path: str, writers: dict[str, str]) -> Item:
    status = entry.stat(follow_symlinks=False)
    why = _paths.why_not(path) or writers.get(path, writers.get("", ""))
    if not entry.is_file(follow_symlinks=False):
        why = "is a link, not a file" if entry.is_symlink() else "is not a regular file"
    return Item(path, status.st_size, status.st_mtime_ns, why)


def _writers(run: Run) -> dict[str, str]:
    """Map files to the processes that still write them; the empty name: all other files."""
    told: dict[str, str] = {}
    known = {process.name: process for process in run.processes}
    for process in known.values():
        if process.state == "running":
            told[process.name] = f"{process.target} (pid {process.here.pid}) still writes"
    for file in (run.path / "manifest").glob("*.jsonl"):
        is_odd = file.stem not in known and not file.name.startswith("+")
        with suppress(OSError):
            if is_odd and time.time() - file.stat().st_mtime < _FRESH_S:
                told[file.stem] = f"{file.stem} may still write"
    if not told:
        return {}
    files = {f"{kind}/{name}.jsonl": told.get(name, "") for kind in _paths.JOURNALS
             for name in {*known, *told}}  # fmt: skip
    for capture in run.captures:
        for artifact in capture.artifacts:
            files[artifact.path] = told.get(capture.process, "")
    return {"": next(iter(told.values())), **files}


def _unsaved(count: int, folder: str) -> str:
    what = "a capture was" if count == 1 else f"{count} captures were"
    return f"{what} not exported; there: rlprof salvage {folder}, then collect again"


def _own_node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())[:8] if ray.is_initialized() else ""


def _rmdir(folder: Path) -> None:
    with suppress(OSError):  # it is not empty
        folder.rmdir()
