"""The progress of a long export: a line now and then."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

_EVERY_S = 5


class Progress:
    """Shows the files and bytes done, of all."""

    def __init__(self, files: int, size: int) -> None:
        self._files, self._size = files, size
        self._begun = self._told = time.monotonic()
        self._is_quiet = os.environ.get("RLPROF_QUIET", "0") not in ("", "0")

    def show(self, files: int, size: int) -> None:
        """Report the files and bytes done."""
        now = time.monotonic()
        if self._is_quiet or now - self._told < _EVERY_S:
            return
        self._told = now
        rate = max(1, size) / (now - self._begun)
        print(
            f"timeline: {files} of {self._files} files, {size / 1e6:.0f} of "
            f"{self._size / 1e6:.0f} MB, {(self._size - size) / rate:.0f} s left",
            file=sys.stderr,
            flush=True,
        )


def say(words: str) -> None:
    """Print a line among those of `rlprof export`."""
    with suppress(OSError):  # `| head`: the file is made anyway
        print(f"timeline: {words}", flush=True)
