"""The new lines of the files in a folder, each read once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rlprof.rundir import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST = 1 << 16
_MOST = 1 << 24
"""Bytes of one file in one read; the rest comes in the next."""


class Tail:
    """Remembers how far each file in *folder* was read."""

    def __init__(self, folder: Path, back: int | None = None) -> None:
        """Begin *back* bytes before the ends, of all files together; None: at their beginning.

        A run of days has gigabytes, and a screen shows its last steps.
        """
        self._folder, self._back = folder, back
        self._read: dict[str, int] = {}

    def files(self) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
        """Return the new records of each file, each with the stem of its name."""
        try:
            with os.scandir(self._folder) as entries:
                sizes = {
                    entry.name: entry.stat(follow_symlinks=False).st_size
                    for entry in entries
                    if entry.name.endswith(".jsonl")
                }
        except OSError:  # the folder does not exist yet
            return
        back = None if self._back is None else max(_LEAST, self._back // max(1, len(sizes)))
        for name, size in sorted(sizes.items()):
            if size != self._read.get(name):
                yield self._records(name, back)

    def _records(self, name: str, back: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
        for line in self._lines(name, back):
            try:
                record = msgspec.json.decode(line)
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                continue  # `rlprof ls` counts these
            if isinstance(record, dict):
                yield Path(name).stem, record

    def _lines(self, name: str, back: int | None) -> list[bytes]:
        try:
            with open_regular(self._folder / name) as file:
                size = os.fstat(file.fileno()).st_size
                is_new = name not in self._read
                at = self._read.get(name, 0)
                if is_new and back is not None and size > back:
                    at = size - back
                if size == at:
                    return []
                file.seek(at)
                data = file.read(_MOST)
        except OSError:
            return []
        end = data.rfind(b"\n") + 1
        self._read[name] = at + (end or (len(data) if len(data) == _MOST else 0))
        first = data.find(b"\n") + 1 if is_new and at else 0  # it begins within a line
        return data[first:end].splitlines()
