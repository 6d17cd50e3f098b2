"""An append-only file of JSON lines with one writer, readable after any crash of that writer."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SALVAGED = "+"
"""Begins the name of a manifest file that tells of other processes; no role's name does."""
_TAIL = 4096
"""The last line of a manifest is shorter."""
_DEEPEST = 50
"""Values nested deeper than this become text where JSON cannot hold them as they are."""


def as_line(record: Mapping[str, Any]) -> bytes:
    """Encode *record* as one line of strict JSON; what JSON cannot hold becomes its text."""
    return as_json(record, separators=(",", ":")).encode("ascii") + b"\n"


def as_json(value: Any, **layout: Any) -> str:
    """Write *value* as strict JSON in ASCII, whatever is in it; *layout* as for `json.dumps`."""
    try:
        text = json.dumps(value, default=_text, allow_nan=False, **layout)
    except (ValueError, TypeError, RecursionError):
        text = ""
    if text and "\\ud" not in text:  # else perhaps half of a surrogate pair
        return text
    return json.dumps(_plain(value), allow_nan=False, **layout)


def _plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Rebuild *value* from what JSON knows: NaN, odd keys, cycles, half characters become text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() < 10_000:  # Python writes no longer ones
        return value
    if isinstance(value, float) and value - value == 0:  # finite
        return value
    if isinstance(value, (dict, list, tuple)) and len(above) < _DEEPEST and id(value) not in above:
        above = (*above, id(value))
        if isinstance(value, dict):
            return {_text(key): _plain(item, above) for key, item in list(value.items())}
        return [_plain(item, above) for item in value]
    return _text(value)


def _text(value: Any) -> str:
    """Say *value* in whole characters, also if it is a stranger's and cannot say itself."""
    try:
        return str(value).encode("utf-8", "backslashreplace").decode()
    except Exception:
        return f"<{type(value).__name__}>"


class Journal:
    """The file; made on the first write, one `write` call for many lines.

    What a full disk refuses stays here, to the byte: the next call goes on where it was cut. Code
    that closes every descriptor of its process closes ours, and its own files get their numbers;
    so before each use the descriptor is looked at, and the file opened again if it was lost.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._file: tuple[int, int] | None = None
        """Device and inode of what was opened."""
        self._waiting = bytearray()
        self.told = 0
        """Bytes it was given in all."""

    def __len__(self) -> int:
        """How many bytes wait to be written."""
        return len(self._waiting)

    def lines_waiting(self) -> int:
        """How many lines could not be written yet, or not whole."""
        return self._waiting.count(b"\n")

    def write(self, lines: Iterable[bytes]) -> None:
        """Append *lines*; raise OSError if not all of them could be written yet."""
        for line in lines:
            self._waiting += line
            self.told += len(line)
        if not self._waiting:
            return
        fd = self._fd if self._fd is not None and self._is_ours(self._fd) else self._open()
        while self._waiting:
            del self._waiting[: os.write(fd, self._waiting)]

    def close(self) -> None:
        """Close the file; any number of times."""
        fd, self._fd = self._fd, None
        if fd is not None and self._is_ours(fd):
            os.close(fd)

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND
        if self._file is None:  # else it was there; where it was removed, none is made anew
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags |= os.O_CREAT
        self._fd = os.open(self._path, flags, 0o644)
        found = os.fstat(self._fd)
        self._file = found.st_dev, found.st_ino
        return self._fd

    def _is_ours(self, fd: int) -> bool:
        try:
            found = os.fstat(fd)
        except OSError as exc:  # a file system that fails is told when it is written to
            return exc.errno != errno.EBADF
        return (found.st_dev, found.st_ino) == self._file


def last_event(file: Path) -> str:
    """Return what the last line of the manifest *file* tells of; nothing while it is written."""
    with file.open("rb") as lines:
        lines.seek(0, os.SEEK_END)
        lines.seek(max(0, lines.tell() - _TAIL))
        last = lines.read().splitlines()[-1:]
    try:
        return str(json.loads(last[0])["event"]) if last else ""
    except (ValueError, KeyError, TypeError):
        return ""
