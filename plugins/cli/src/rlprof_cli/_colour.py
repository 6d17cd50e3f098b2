"""Colours for states: on a terminal, unless NO_COLOR is set."""

from __future__ import annotations

import os
import sys

_GREEN, _YELLOW, _RED, _BLUE = 32, 33, 31, 36
_CODES = {
    "whole": _GREEN, "partial": _YELLOW, "empty": _YELLOW, "failed": _RED, "lost": _RED,
    "died": _RED, "unreadable": _RED, "running": _BLUE, "recording": _BLUE, "exporting": _BLUE,
}  # fmt: skip


def coloured(cell: str) -> str:
    """Colour a cell of a table by the state in it."""
    code = _CODES.get(cell.strip())
    if code is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return cell
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return f"\x1b[{code}m{cell}\x1b[0m" if is_terminal else cell
