"""The text of a trace file, gzipped or not; the text before damage is not lost.

ISA-L unpacks three times as fast as zlib; a training image may do without it.
"""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO

_PACKED, _PLAIN = 1 << 16, 1 << 15
"""Bytes that are read and unpacked at a time, and the most that damage loses."""


class DamagedError(Exception):
    """The packed data cannot be unpacked."""


class _Zlib:
    """A member of gzip, by the standard library; the words of ISA-L's decompressor."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(31)
        self._has_more = False

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    @property
    def needs_input(self) -> bool:
        return not (self.eof or self._has_more)

    def decompress(self, packed: bytes, size: int) -> bytes:
        plain = self._member.decompress(self._member.unconsumed_tail + packed, size)
        self._has_more = bool(self._member.unconsumed_tail) or len(plain) == size
        return plain


try:
    from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError
except ImportError:
    _ERROR: type[Exception] = zlib.error

    def _member() -> Any:
        return _Zlib()
else:
    _ERROR = IsalError  # type: ignore[assignment]  # its stub calls it no class

    def _member() -> Any:
        return IgzipDecompressor(DECOMP_GZIP)


class Unpacked:
    """The text of *file*, gzipped or not.

    Unlike `gzip.open`, return all that was unpacked of a file that ends too early.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        self._member = _member()
        self._is_begun = False
        """Whether anything of the member has been read."""

    def read(self, size: int) -> bytes:
        """Return some bytes, *size* at most; empty at the end.

        Raise EOFError where it comes too early, `DamagedError` where nothing more can be unpacked.
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
                plain: bytes = self._member.decompress(packed, min(size, _PLAIN))
            except _ERROR as exc:
                raise DamagedError(str(exc)) from None
            if plain:
                return plain

    def _next(self) -> bytes:
        """Return the next packed bytes; members may follow each other, and zeros the last."""
        packed = b""
        if self._member.eof:
            packed = self._member.unused_data
            self._member, self._is_begun = _member(), False
        while self._member.needs_input and not packed:
            packed = self._file.read(_PACKED)
            if not packed:
                break
            if not self._is_begun:
                packed = packed.lstrip(b"\0")
        return packed if self._is_begun else packed.lstrip(b"\0")
