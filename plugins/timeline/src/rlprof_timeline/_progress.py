"""What an export prints on its way."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def print_progress(done: int, size: int) -> None:
    """Say how many bytes are done, of all."""
    if os.environ.get("RLPROF_QUIET", "0") in ("", "0"):
        words = f"timeline: {done / 1e6:.0f} of {size / 1e6:.0f} MB"
        print(words, file=sys.stderr, flush=True)


def print_line(words: str) -> None:
    """Print a line among those of `rlprof export`."""
    with suppress(OSError):  # `| head`: the file is made anyway
        print(f"timeline: {words}", flush=True)
