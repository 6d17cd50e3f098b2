"""A trace file, opened; or why nothing of it can be shown.

Separate because it is opened to be read (`_text.py`) and for its end (`_tail.py`), and the same is
said each time.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from rlprof.rundir import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class UnreadableError(Exception):
    """A trace nothing can be shown of, and why."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open *path*; errors of the system, now or during reads, become UnreadableError."""
    try:
        with open_regular(path) as file:
            yield file
    except FileNotFoundError:
        raise UnreadableError("is not there") from None
    except OSError as exc:
        raise UnreadableError(f"cannot be read: {exc.strerror or exc}") from exc
