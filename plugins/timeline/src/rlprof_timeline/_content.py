"""What of a trace file becomes a member of an archive: bytes that are moved as they lie.

Perfetto opens an archive as a whole or not at all, so that one file that was cut would lose all
others. A gzip file of the size that its run says it has is taken for whole; any other is unpacked
once, and kept nowhere, to see that it is.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import zlib
from typing import TYPE_CHECKING, BinaryIO

import attrs
from isal import igzip, isal_zlib

from rlprof.rundir import open_regular
from rlprof_timeline._gzip import unpacked
from rlprof_timeline._text import UnreadableError
from rlprof_timeline._zip import LARGEST, Text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK = 1 << 20
_PACKED_CHUNK = 1 << 16
_HEAD = 1 << 12
_TAIL = 8
"""Bytes after the deflated ones: checksum and size."""
_DOUBTFUL = 64 << 20
"""Above it the size in a gzip file, which is one of 32 bits, may have gone round."""
_MEMBER = re.compile(
    rb"\x1f\x8b\x08[\x00-\x1f][\x00-\xff]{4}[\x00\x02\x04][\x00-\x0d\xff]", re.DOTALL
)
"""What may be the begin of a member of a gzip file; one more is found by chance in 100 GB."""
_REFUSED = ", so Perfetto would refuse the whole archive (without --archive, what is well is shown)"
_LEVEL = 1


@attrs.frozen
class Content:
    """Where in a file the bytes lie that become the member."""

    begin: int
    length: int
    text: Text | None = None
    """They are its deflated bytes; None: they are the text."""
    is_split: bool = False
    """They are several members of gzip, of which a ZIP can only hold one: to be packed anew."""

    def chunks(self, path: Path) -> Iterator[bytes]:
        """Read the bytes of the member."""
        with open_regular(path) as file:
            if self.is_split:
                yield from _packed_anew(file)
                return
            file.seek(self.begin)
            left = self.length
            while chunk := file.read(min(left, _CHUNK)):
                left -= len(chunk)
                yield chunk
        if left:
            raise EOFError(f"ends {left} bytes before it did a moment ago")


def content_of(path: Path, size: int) -> Content:
    """Look for what is to be moved; *size*: the bytes a whole file has, 0: nobody knows."""
    try:
        with open_regular(path) as file:
            found = _content(file, size)
    except FileNotFoundError:
        raise UnreadableError("is not there") from None
    except (EOFError, zlib.error, igzip.BadGzipFile) as exc:
        why = "is cut short" if isinstance(exc, EOFError) else f"is damaged: {exc}"
        raise UnreadableError(why + _REFUSED) from exc
    except OSError as exc:
        raise UnreadableError(f"cannot be read: {exc.strerror or exc}") from exc
    if max(found.length, found.text.size if found.text else 0) > LARGEST:
        raise UnreadableError("is more than 4 GB, which no member of an archive can be")
    return found


def _content(file: BinaryIO, size: int) -> Content:
    there = os.fstat(file.fileno()).st_size
    if not there:
        raise UnreadableError("is empty")
    stream = unpacked(file)
    head = b"".join(stream.read(_HEAD).split())
    if not head.startswith((b'{"', b'[{"')):  # what Perfetto knows JSON by
        raise UnreadableError("does not begin as JSON does for Perfetto" + _REFUSED)
    if stream is file:
        file.seek(-min(there, _HEAD), os.SEEK_END)
        _see_end(head, file.read())
        return Content(0, there)
    file.seek(0)
    if there == size and there < _DOUBTFUL:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            begin = _begin(data)
            if _MEMBER.search(data, begin) is None:
                return Content(begin, there - begin - _TAIL, Text(*_tail(data[-_TAIL:])))
    return _looked_through(file, head)


def _looked_through(file: BinaryIO, head: bytes) -> Content:
    inflate = isal_zlib.decompressobj(16 + isal_zlib.MAX_WBITS)
    begin = at = crc = size = 0
    end = b""
    while not inflate.eof and (chunk := file.read(_PACKED_CHUNK)):
        begin = begin or _begin(chunk)
        at += len(chunk)
        text = inflate.decompress(chunk)
        crc, size = isal_zlib.crc32(text, crc), size + len(text)
        end = (end + text[-_HEAD:])[-_HEAD:]
    if not inflate.eof:
        raise EOFError
    rest = inflate.unused_data
    if (rest + file.read(_HEAD)).startswith(b"\x1f\x8b"):
        return _split(file, head)
    _see_end(head, end)
    length = at - len(rest) - _TAIL - begin
    return Content(begin, length, Text(crc, size))


def _split(file: BinaryIO, head: bytes) -> Content:
    file.seek(0)
    crc = size = 0
    end = b""
    stream = unpacked(file)
    while text := stream.read(_CHUNK):
        crc, size = isal_zlib.crc32(text, crc), size + len(text)
        end = (end + text[-_HEAD:])[-_HEAD:]
    _see_end(head, end)
    return Content(0, os.fstat(file.fileno()).st_size, Text(crc, size), is_split=True)


def _packed_anew(file: BinaryIO) -> Iterator[bytes]:
    deflate = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -isal_zlib.MAX_WBITS)
    stream = unpacked(file)
    while text := stream.read(_CHUNK):
        yield deflate.compress(text)
    yield deflate.flush()


def _see_end(head: bytes, end: bytes) -> None:
    if not end.rstrip().endswith((b"}", b"]")) and not head.startswith(b"["):
        raise EOFError


def _begin(data: bytes | mmap.mmap) -> int:
    """Find where the deflated bytes begin: after the head of a gzip member (RFC 1952)."""
    flags, at = data[3], 10
    if flags & 4:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):  # its name and a comment
        if flags & flag:
            at = data.find(b"\0", at) + 1 or len(data)
    return at + (2 if flags & 2 else 0)


def _tail(data: bytes) -> tuple[int, int]:
    crc, size = struct.unpack("<II", data)
    return crc, size
