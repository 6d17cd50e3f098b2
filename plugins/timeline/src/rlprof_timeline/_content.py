"""A trace file as a member of an archive: bytes that are moved as they lie.

Perfetto opens an archive as a whole or not at all, so that one file that was cut would lose all
others. A gzip file of the size that its run says it has is taken for whole; any other is unpacked
on its way, and kept nowhere, to see that it is.
"""

from __future__ import annotations

import os
import re
import struct
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

import attrs
from isal import isal_zlib

from rlprof_timeline._gzip import LEVEL, DamagedError, Unpacked
from rlprof_timeline._opened import UnreadableError, opened
from rlprof_timeline._tail import members_at
from rlprof_timeline._text import TraceText
from rlprof_timeline._zip import LARGEST, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rlprof_timeline._zip import Content, Zip

    _Way = Callable[[Path, BinaryIO], Content]

_COPIED = 1 << 18
"""At a time, into the same room: it stays in the caches of a core."""
_INFLATED = 1 << 16
"""Packed bytes at a time: they may be a thousand times as many."""
_HEAD = 1 << 12
_TAIL = 8
"""Bytes after the deflated ones: checksum and size."""
_DOUBTFUL = 64 << 20
"""Above it the size in a gzip file, which is one of 32 bits, may have gone round."""
_MEMBER = re.compile(
    rb"\x1f\x8b\x08[\x00-\x1f][\x00-\xff]{4}[\x00\x02\x04][\x00-\x0d\xff]", re.DOTALL
)
"""What may be the begin of one more member of a gzip file; by chance it is in one of 100 GB."""
_OVERLAP = 9
_END = 1 << 14
_REFUSED = ", so Perfetto would refuse the whole archive (without --archive, what is well is shown)"


class _OtherWayError(Exception):
    """This way the file cannot be moved."""


@attrs.define
class _Seen:
    """What was seen of a text on its way."""

    crc: int = 0
    size: int = 0
    first: bytes = b""
    """Its first letter."""
    end: bytes = b""

    def see(self, text: bytes) -> None:
        """Look at what comes next."""
        self.crc, self.size = isal_zlib.crc32(text, self.crc), _not_too_many(self.size + len(text))
        self.first = self.first or text.lstrip()[:1]
        self.end = (self.end + text[-_END:])[-_END:]


def move(path: Path, archive: Zip, name: str, size: int = 0, text_size: int | None = None) -> None:
    """Move a trace into *archive*.

    *size*: the bytes a whole file has, 0: nobody knows; *text_size*: those inside of gzip.
    """
    for way in _ways(path, size, text_size):
        try:
            return archive.add(name, _read(path, way))
        except _OtherWayError:
            continue
    raise UnreadableError("has changed while it was read")


def _ways(path: Path, size: int, text_size: int | None) -> list[_Way]:
    """Look at the begin of a file; say how to move it, the cheapest way first."""
    with _reading(path) as file:
        there = os.fstat(file.fileno()).st_size
        stream = Unpacked(file)
        head = b"".join(stream.read(_HEAD).split())
        if not head.startswith((b'{"', b'[{"')):  # what Perfetto knows JSON by
            raise UnreadableError("does not begin as JSON does for Perfetto" + _REFUSED)
    if not stream.is_packed:
        return [_as_text]
    is_known = there == size and there < _DOUBTFUL
    trusted = partial(_trusted, text_size=text_size)
    return [*([trusted] if is_known else []), _looked_through, _packed_anew]


def _read(path: Path, way: _Way) -> Content:
    with _reading(path) as file:
        return (yield from way(path, file))


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """Open a file, and say what is wrong with it."""
    try:
        with opened(path) as file:
            yield file
    except EOFError:
        raise UnreadableError("is cut short" + _REFUSED) from None
    except (isal_zlib.error, DamagedError) as exc:  # type: ignore[misc]  # as in `_gzip.py`
        raise UnreadableError(f"is damaged: {exc}{_REFUSED}") from exc


def _as_text(path: Path, file: BinaryIO) -> Content:
    room = memoryview(bytearray(_COPIED))
    count, first = 0, b""
    while read := file.readinto(room):  # type: ignore[attr-defined]
        count = _not_too_many(count + read)
        first = first or bytes(room[:_HEAD]).lstrip()[:1]
        yield room[:read]
    file.seek(max(0, count - _END))
    _see_end(path, first, file.read(_END))
    return None


def _trusted(_: Path, file: BinaryIO, text_size: int | None) -> Content:
    """Move deflated bytes that nobody looks at, except for one more member among them.

    The size at the end is the last member's: where it is that of the whole text there is no other.
    """
    begin = _begin(file.read(_INFLATED))
    file.seek(-_TAIL, os.SEEK_END)
    left = file.tell() - begin
    crc, size = struct.unpack("<II", file.read(_TAIL))
    is_one = size == text_size
    file.seek(begin)
    buffer = bytearray(_OVERLAP + _COPIED)
    room = memoryview(buffer)[_OVERLAP:]
    while left:
        count = file.readinto(room[:left])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        if not is_one and _MEMBER.search(buffer, 0, _OVERLAP + count):
            raise _OtherWayError
        left -= count
        yield room[:count]
        buffer[:_OVERLAP] = buffer[count : count + _OVERLAP]
    return Text(crc, size)


def _looked_through(path: Path, file: BinaryIO) -> Content:
    """Move deflated bytes, and unpack them beside to see whether they are whole."""
    inflate = isal_zlib.decompressobj(16 + isal_zlib.MAX_WBITS)
    seen, begin, held = _Seen(), 0, b""
    while not inflate.eof:
        chunk = file.read(_INFLATED)
        if not chunk:
            raise EOFError
        seen.see(inflate.decompress(chunk))
        if not begin:
            begin = _begin(chunk)
            chunk = chunk[begin:]
        held += chunk
        if not inflate.eof:
            yield held[:-_TAIL]
            held = held[-_TAIL:]
    rest = inflate.unused_data
    if (rest + file.read(_TAIL)).startswith(b"\x1f\x8b"):
        raise _OtherWayError
    _see_end(path, seen.first, seen.end)
    yield held[: len(held) - len(rest) - _TAIL]
    return Text(seen.crc, seen.size)


def _packed_anew(path: Path, file: BinaryIO) -> Content:
    """Make one of several members of gzip, for a ZIP can hold no other."""
    deflate = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, -isal_zlib.MAX_WBITS)
    stream, seen = Unpacked(file), _Seen()
    while text := stream.read(_COPIED):
        seen.see(text)
        yield deflate.compress(text)
    _see_end(path, seen.first, seen.end)
    yield deflate.flush()
    return Text(seen.crc, seen.size)


def _see_end(path: Path, first: bytes, end: bytes) -> None:
    """See that the text is whole, by its *end*; where that does not tell, read all of it."""
    end = end.rstrip()
    if first == b"[":  # whatever its end, Perfetto opens it
        return
    if not end.endswith(b"}"):
        raise EOFError
    if members_at(end) is not None:
        return
    text = TraceText(path)
    for _ in text.batches():
        pass
    if text.problems:
        raise EOFError


def _not_too_many(size: int) -> int:
    if size > LARGEST:
        raise UnreadableError("is more than 4 GB of JSON, which no member of an archive can be")
    return size


def _begin(head: bytes) -> int:
    """Find where the deflated bytes begin: after the head of a gzip member (RFC 1952)."""
    flags, at = head[3], 10
    if flags & 4:
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for flag in (8, 16):  # its name and a comment
        if flags & flag:
            at = head.find(b"\0", at) + 1 or len(head)
    return at + (2 if flags & 2 else 0)
