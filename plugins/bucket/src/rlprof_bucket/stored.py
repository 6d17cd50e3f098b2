"""The files below a URL, as fsspec sees them; its exceptions become ours here."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rlprof.errors import RunError, raised

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    F = TypeVar("F", bound=Callable[..., Any])


def _reaching(method: F) -> F:
    """Let *method* raise OSError and RunError alone, whatever its file system raises."""

    @functools.wraps(method)
    def call(self: Stored, *args: Any) -> Any:
        try:
            return method(self, *args)
        except OSError:
            raise
        except Exception as exc:
            raise RunError(f"{self.url}: {raised(exc)}") from exc

    return cast("F", call)


class Stored:
    """A folder in a bucket; names are relative to it."""

    def __init__(self, url: str) -> None:
        """Find the file system of *url*; raise RunError if it is unknown or not installed."""
        self.url = url.rstrip("/")
        self._open()

    @_reaching
    def _open(self) -> None:
        from fsspec.core import url_to_fs

        options = {"auto_mkdir": True} if self.url.startswith("file:") else {}
        self._fs, root = url_to_fs(self.url, **options)
        self._root = root.rstrip("/")

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def names(self, folder: str = "") -> list[str]:
        """List the names in *folder*; none if it is not there."""
        return sorted(one["name"].rstrip("/").rpartition("/")[2] for one in self._list(folder))

    def size(self, folder: str) -> int:
        """Return the bytes of the files in *folder*."""
        return sum(int(one["size"] or 0) for one in self._list(folder))

    @_reaching
    def _list(self, folder: str) -> list[dict[str, Any]]:
        self._fs.invalidate_cache()
        try:
            found: list[dict[str, Any]] = self._fs.ls(self._at(folder), detail=True)
        except FileNotFoundError:
            return []
        return found

    @_reaching
    def files(self) -> dict[str, int]:
        """Return the size of each file below it."""
        self._fs.invalidate_cache()
        found: dict[str, dict[str, Any]] = self._fs.find(self._root, detail=True)
        return {
            path.removeprefix(f"{self._root}/"): int(about["size"] or 0)
            for path, about in sorted(found.items())
        }

    @_reaching
    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is not there."""
        try:
            data: bytes = self._fs.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        return data

    @_reaching
    def write(self, name: str, data: bytes) -> None:
        """Write a small file."""
        self._fs.pipe_file(self._at(name), data)

    @_reaching
    def put(self, file: Path, name: str) -> None:
        """Copy *file* there."""
        self._fs.put_file(str(file), self._at(name))

    @_reaching
    def get(self, name: str, file: Path) -> None:
        """Copy a file from there to *file*, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            self._fs.get_file(self._at(name), str(draft))
            draft.rename(file)
        finally:
            draft.unlink(missing_ok=True)

    @_reaching
    def remove(self, name: str) -> None:
        """Remove a file."""
        self._fs.rm_file(self._at(name))


def why(exc: OSError | RunError, url: str) -> str:
    """Return what went wrong below *url*, in one line that does not name it again."""
    return raised(exc) if isinstance(exc, OSError) else str(exc).removeprefix(f"{url}: ")


def fault_of(url: str) -> str:
    """Say why *url* cannot be written to; empty if it can."""
    name, url = ".rlprof-doctor", url.rstrip("/")
    try:
        stored = Stored(url)
        stored.write(name, b"")
        stored.remove(name)
    except (OSError, RunError) as exc:
        return why(exc, url)
    return ""
