"""Gzip, written: to a file that is open already, or to one that is whole or not there."""

from __future__ import annotations

import os
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Self

_GZIP = 31
"""A head without name and time: the same text gives the same bytes."""
_SMALL, _FAST = 4, 1
"""Levels. zlib's 4 takes a third of the CPU of its 6 and 5 % more room; ISA-L's 1 is twenty times
as fast as zlib, at two thirds of what its level 6 saves."""


class Packed:
    """A gzip member on its way into *file*.

    By default it is small, for files that stay on disk with the run; with *fast* it is quick, by
    ISA-L if that is installed, for files that can be made again.
    """

    def __init__(self, file: BinaryIO, *, fast: bool = False) -> None:
        self._file = file
        self._packer = _packer(fast=fast)
        self.count = 0
        """Bytes so far, before they were packed."""

    def write(self, data: bytes | memoryview) -> int:
        """Pack *data*; return how many bytes it has."""
        self.count += len(data)
        self._file.write(self._packer.compress(data))
        return len(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._file.write(self._packer.flush())


@contextmanager
def whole(out: Path, *, fast: bool = False) -> Iterator[Packed]:
    """Yield a writer to *out*, which exists, synced, once the block ends without error."""
    part = out.with_name(f".{out.name}.part")
    try:
        with part.open("wb") as file:
            with Packed(file, fast=fast) as packed:
                yield packed
            file.flush()
            os.fsync(file.fileno())
        part.replace(out)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _packer(*, fast: bool) -> Any:
    if fast:
        try:
            from isal import isal_zlib
        except ImportError:
            return zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        return isal_zlib.compressobj(_FAST, isal_zlib.DEFLATED, _GZIP)
    return zlib.compressobj(_SMALL, zlib.DEFLATED, _GZIP)
