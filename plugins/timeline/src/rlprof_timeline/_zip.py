"""A ZIP whose members are moved in as they lie, also those that are compressed already.

`zipfile` would unpack and pack them again. Perfetto's reader (`util/zip_reader.cc`) takes no member
in ZIP64 and no name in UTF-8, and passes over the directory at the end; other readers want that,
so where the archive itself is larger than 4 GB the directory alone is in ZIP64.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

import attrs
from isal.isal_zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Generator

LARGEST = (1 << 32) - 2
"""Bytes of a member, packed or not."""
_MOST = (1 << 16) - 2
_STORED, _DEFLATED = 0, 8
_PLAIN, _ZIP64 = 20, 45
"""Versions of the format."""
_UNIX = 3 << 8
_FILE = 0o100644 << 16
_1980 = 1 << 5 | 1
"""The first day there is: the same members give the same bytes."""


@attrs.frozen
class Text:
    """What the deflated bytes of a member are, once they are unpacked."""

    crc: int
    size: int


Content: TypeAlias = "Generator[bytes | memoryview, None, Text | None]"
"""The bytes of a member, each chunk gone when the next is there; None at the end: not deflated."""


@attrs.frozen
class _Member:
    name: bytes
    method: int
    text: Text
    packed: int
    at: int

    def about(self, version: int) -> bytes:
        """Return what stands in front of it, and in the directory."""
        what = (version, 0, self.method, 0, _1980, self.text.crc, self.packed, self.text.size)
        return struct.pack("<HHHHHIII", *what)


class Zip:
    """An archive that is being written to *file*."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._members: list[_Member] = []

    def add(self, name: str, content: Content) -> None:
        """Add a member; of one whose *content* raises, nothing stays."""
        at = self._file.tell()
        try:
            self._file.write(bytes(30) + name.encode("ascii"))
            packed, crc, text = self._copied(content)
            method = _STORED if text is None else _DEFLATED
            member = _Member(name.encode("ascii"), method, text or Text(crc, packed), packed, at)
            front = b"PK\3\4" + member.about(_PLAIN) + struct.pack("<HH", len(name), 0)
        except BaseException:
            self._file.seek(at)
            self._file.truncate()
            raise
        end = self._file.tell()
        self._file.seek(at)
        self._file.write(front)
        self._file.seek(end)
        self._members.append(member)

    def _copied(self, content: Content) -> tuple[int, int, Text | None]:
        packed = crc = 0
        while True:
            try:
                chunk = next(content)
            except StopIteration as done:
                return packed, crc, done.value
            self._file.write(chunk)
            packed, crc = packed + len(chunk), crc32(chunk, crc)

    def end(self) -> None:
        """Write the directory."""
        begin = self._file.tell()
        for member in self._members:
            self._file.write(_entry(member))
        size, count = self._file.tell() - begin, len(self._members)
        if begin + size > LARGEST or count > _MOST:
            where = self._file.tell()
            end = (44, _UNIX | _ZIP64, _ZIP64, 0, 0, count, count, size, begin)
            self._file.write(b"PK\6\6" + struct.pack("<QHHIIQQQQ", *end))
            self._file.write(b"PK\6\7" + struct.pack("<IQI", 0, where, 1))
        counts = min(count, 0xFFFF), min(count, 0xFFFF)
        sizes = min(size, 0xFFFFFFFF), min(begin, 0xFFFFFFFF)
        self._file.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, *counts, *sizes, 0))


def _entry(member: _Member) -> bytes:
    is_far = member.at > LARGEST
    extra = struct.pack("<HHQ", 1, 8, member.at) if is_far else b""
    about = struct.pack("<H", _UNIX | _PLAIN) + member.about(_ZIP64 if is_far else _PLAIN)
    lengths = struct.pack("<HHHHHI", len(member.name), len(extra), 0, 0, 0, _FILE)
    at = struct.pack("<I", min(member.at, 0xFFFFFFFF))
    return b"PK\1\2" + about + lengths + at + member.name + extra
