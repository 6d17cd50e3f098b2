"""Gzip, by ISA-L: twenty times as fast as zlib here, at two thirds of what its level 6 saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from isal import igzip

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_LEVEL = 1
"""Of compression: 0 gives a quarter more bytes and is not faster."""


def unpacked(file: BinaryIO) -> BinaryIO:
    """Read *file*, gzipped or not."""
    magic = file.read(2)
    file.seek(0)
    return igzip.IGzipFile(fileobj=file, mode="rb") if magic == b"\x1f\x8b" else file  # type: ignore[return-value,no-untyped-call]


def packed(file: BinaryIO) -> AbstractContextManager[BinaryIO]:
    """Write a gzip member to *file*; without name and time in its head, for the same file twice."""
    return igzip.IGzipFile("", "wb", _LEVEL, file, mtime=0)  # type: ignore[return-value,no-untyped-call]
