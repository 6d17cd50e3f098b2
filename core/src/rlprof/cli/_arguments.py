"""What several commands take as an argument."""

from __future__ import annotations

import argparse
from contextlib import suppress


def duration(text: str) -> float:
    """Read a number of seconds, as `--timeout` and `--window-s` take it."""
    with suppress(ValueError):
        if 0 < float(text) <= 86400:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected seconds, more than 0 and up to 86400, got {text!r}")
