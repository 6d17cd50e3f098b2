"""Tables for people: aligned, and as narrow as possible."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


_GREEN, _YELLOW, _RED, _BLUE = 32, 33, 31, 36
_CODES = {
    "whole": _GREEN, "whole, cut": _YELLOW, "partial": _YELLOW, "empty": _YELLOW, "failed": _RED,
    "lost": _RED, "died": _RED, "unreadable": _RED, "running": _BLUE, "recording": _BLUE,
    "exporting": _BLUE,
}  # fmt: skip
"""Colours for states: on a terminal, unless NO_COLOR is set."""
_NARROWEST = 20
"""Columns that a wrapped cell has even in a terminal that is too narrow."""


def is_quiet() -> bool:
    """Return whether to print results and errors alone: `-q`, or `RLPROF_QUIET=1`."""
    return os.environ.get("RLPROF_QUIET", "0") not in ("", "0")


def coloured(cell: str) -> str:
    """Colour a cell of a table by the state in it."""
    code = _CODES.get(cell.strip())
    if code is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return cell
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return f"\x1b[{code}m{cell}\x1b[0m" if is_terminal else cell


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = (), width: int = 0
) -> str:
    """Lay out *rows* under *head*; the columns named in *right* hold numbers.

    With a *width*, the last column is wrapped to fit into it.
    """
    longest = 1000 if width else 160
    lines = [list(head), *([plain(cell, longest) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    if width:
        widths[-1] = max(_NARROWEST, width - sum(widths[:-1]) - 2 * len(widths[:-1]))
        lines = [line for row in lines for line in _wrapped(row, widths[-1])]
    laid = []
    for line in lines:
        cells = []
        for name, cell, columns in zip(head, line, widths, strict=True):
            padded = cell.rjust(columns) if name in right else cell.ljust(columns)
            cells.append(coloured(padded) if name == "STATE" else padded)
        laid.append("  ".join(cells).rstrip())
    return "\n".join(laid)


def _wrapped(row: list[str], width: int) -> list[list[str]]:
    """Continue the last cell of *row* below it, after *width* columns."""
    last = textwrap.wrap(row[-1], width, break_on_hyphens=False)
    first = [*row[:-1], last[0] if last else ""]
    return [first, *([""] * (len(row) - 1) + [words] for words in last[1:])]


def plain(text: str, longest: int = 160) -> str:
    """Keep any *text* on its line and in its column."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def size(number: int) -> str:
    """Show a number of bytes: `812 B`, `4.2 MB`."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"


def seconds(value: float | None) -> str:
    """Show a duration: `12 ms`, `3.4 s`."""
    if value is None:
        return "-"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
