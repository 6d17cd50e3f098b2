"""The files below a URL, as fsspec sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.errors import RunError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def fault_of(url: str) -> str:
    """Say why *url* cannot be written to; empty if it can."""
    name = ".rlprof-doctor"
    try:
        stored = Stored(url)
        stored.write(name, b"")
        stored.remove(name)
    except Exception as exc:  # of any file system
        return one_line(str(exc).removeprefix(f"{url}: ") or type(exc).__name__)
    return ""


class Stored:
    """A folder in a bucket; names are relative to it."""

    def __init__(self, url: str) -> None:
        """Find the file system of *url*; raise RunError if it is unknown or not installed."""
        from fsspec.core import url_to_fs

        self.url = url.rstrip("/")
        options = {"auto_mkdir": True} if url.startswith("file:") else {}
        try:
            self._fs, root = url_to_fs(self.url, **options)
        except (ImportError, ValueError) as exc:
            raise RunError(f"{url}: cannot be reached: {one_line(exc)}") from exc
        self._root = root.rstrip("/")

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def names(self, folder: str = "") -> list[str]:
        """List the names in *folder*; none if it is not there."""
        self._fs.invalidate_cache()
        try:
            found: list[str] = self._fs.ls(self._at(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(one.rstrip("/").rpartition("/")[2] for one in found)

    def size(self, folder: str) -> int:
        """Return the bytes of the files in *folder*."""
        self._fs.invalidate_cache()
        try:
            found: list[dict[str, Any]] = self._fs.ls(self._at(folder), detail=True)
        except FileNotFoundError:
            return 0
        return sum(int(one["size"] or 0) for one in found)

    def files(self) -> Iterator[tuple[str, int]]:
        """List all files below it, with their sizes."""
        self._fs.invalidate_cache()
        found: dict[str, dict[str, Any]] = self._fs.find(self._root, detail=True)
        for path, about in sorted(found.items()):
            yield path.removeprefix(f"{self._root}/"), int(about["size"] or 0)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is not there."""
        try:
            data: bytes = self._fs.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a small file."""
        self._fs.pipe_file(self._at(name), data)

    def put(self, file: Path, name: str) -> None:
        """Copy *file* there."""
        self._fs.put_file(str(file), self._at(name))

    def get(self, name: str, file: Path) -> None:
        """Copy a file from there to *file*, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.part")
        self._fs.get_file(self._at(name), str(draft))
        draft.rename(file)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._fs.rm_file(self._at(name))
