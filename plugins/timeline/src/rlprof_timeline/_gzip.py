"""Gzip, by ISA-L: twenty times as fast as zlib here, at two thirds of what its level 6 saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from isal import igzip
from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

LEVEL = 1
"""Of compression: 0 gives a quarter more bytes and is not faster."""
_PACKED, _PLAIN = 1 << 16, 1 << 15
"""Bytes that are read and unpacked at a time: of a damaged file, so many at most are lost."""


class DamagedError(Exception):
    """What is packed here cannot be unpacked."""


class Unpacked:
    """The text of *file*, gzipped or not.

    Not `IGzipFile`, which, where a file ends too early, does not return what it has unpacked.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        self._member = IgzipDecompressor(DECOMP_GZIP)
        self._is_begun = False
        """Whether anything of the member has been read."""

    def read(self, size: int) -> bytes:
        """Return some bytes, *size* at most; none at the end.

        Raise EOFError where it comes too early.
        """
        if not self.is_packed:
            return self._file.read(size)
        while True:
            packed = self._next()
            if not packed and self._member.needs_input:
                if self._is_begun:
                    raise EOFError
                return b""
            self._is_begun = True
            try:
                plain = self._member.decompress(packed, min(size, _PLAIN))
            except IsalError as exc:  # type: ignore[misc]  # its stub calls it no class
                raise DamagedError(str(exc)) from None
            if plain:
                return plain

    def _next(self) -> bytes:
        """Return what is to be unpacked next; members may follow each other, and zeros the last."""
        packed = b""
        if self._member.eof:
            packed = self._member.unused_data
            self._member, self._is_begun = IgzipDecompressor(DECOMP_GZIP), False
        while self._member.needs_input and not packed:
            packed = self._file.read(_PACKED)
            if not packed:
                break
            if not self._is_begun:
                packed = packed.lstrip(b"\0")
        return packed if self._is_begun else packed.lstrip(b"\0")


def packed(file: BinaryIO) -> AbstractContextManager[BinaryIO]:
    """Write a gzip member to *file*; without name and time in its head, for the same file twice."""
    return igzip.IGzipFile("", "wb", LEVEL, file, mtime=0)  # type: ignore[return-value,no-untyped-call]
