"""Names and numbers as a page shows them: safe in HTML, short, and the same in every section."""

from __future__ import annotations

import html
import statistics
from math import isfinite
from typing import TYPE_CHECKING

from rlprof_report._plain import listed, plain
from rlprof_run import ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterable

NONE = "\u2013"
"""Stands for a missing figure."""
_SPACE = "\u00a0"


def escaped(text: object, most: int = 300) -> str:
    """Return *text* for a text node or a quoted attribute of HTML and SVG."""
    return html.escape(plain(str(text), most), quote=True)


def seconds(value: float | None) -> str:
    """Return a duration with three figures and its unit: `83.2 s`, `95 ms`, `12 µs`."""
    if value is None or not isfinite(value):
        return NONE
    size = abs(value)
    if size >= 0.9995:
        digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
        return f"{value:,.{digits}f}{_SPACE}s"
    if size >= 0.0009995:
        return f"{value * 1e3:.{0 if size >= 0.00995 else 1}f}{_SPACE}ms"
    return f"{value * 1e6:.0f}{_SPACE}µs" if size >= 5e-7 else f"0{_SPACE}s"


def percent(share: float | None) -> str:
    """Return a share of one as percent, with a decimal below ten."""
    if share is None or not isfinite(share):
        return NONE
    return f"{share * 100:.{0 if share == 0 or abs(share) >= 0.0995 else 1}f}{_SPACE}%"


def number(value: float | None) -> str:
    """Return a count or a rate with at most four figures and an SI letter: `8,192`, `12.5k`."""
    if value is None or not isfinite(value):
        return NONE
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= scale:
            return f"{value / (1e3 if letter == 'k' else scale):.3g}{letter}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 99.95 else f"{value:.3g}"


def numbers(values: Iterable[int], most: int = 12) -> str:
    """Return step numbers as ranges: `1-5, 7`, at most *most* of them."""
    return listed(ranges_of(values), most)


def median(values: Iterable[float]) -> float | None:
    """Return the median of *values*; None if there are none."""
    known = list(values)
    return statistics.median(known) if known else None
