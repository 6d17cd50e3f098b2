"""Counters over time: a small picture for each name, a line for each process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._chart import WIDTH, chart, line
from rlprof_report._page._color import PALETTE
from rlprof_report._page._table import section
from rlprof_report._page._text import escaped, median, number, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report.values import Analysis, Counter

_LINES = 8
"""Processes that have lines of their own; of more, the band from the least to the most."""
_BINS = 120
_HEIGHT = 90


def counters(analysis: Analysis) -> str:
    """Return the section."""
    named: dict[str, list[Counter]] = {}
    for one in analysis.counters:
        if one.times_s:
            named.setdefault(one.name, []).append(one)
    pictures = "".join(_picture(name, ones) for name, ones in sorted(named.items()))
    if not pictures:
        return ""
    note = (
        f'<p class="note">From counters, the whole run. One line per process; for more than '
        f"{_LINES} processes, the least, median and most.</p>"
    )
    return section("counters", "Counters", f'<div class="small">{pictures}</div>{note}')


def _picture(name: str, ones: Sequence[Counter]) -> str:
    end = max(one.times_s[-1] for one in ones)
    begin = min(one.times_s[0] for one in ones)
    high = max(max(one.values) for one in ones)
    unit = ones[0].unit
    top = 1.0 if unit == "share" and high <= 1.0 else high if high > 0 else 1.0
    scale = (end - begin) or 1.0
    if len(ones) <= _LINES:
        marks = "".join(
            line(
                (
                    ((at - begin) / scale * WIDTH, _HEIGHT * (1 - value / top))
                    for at, value in zip(one.times_s, one.values, strict=True)
                ),
                color=PALETTE[at % len(PALETTE)],
                title=one.process,
            )
            for at, one in enumerate(ones)
        )
    else:
        marks = _band(ones, begin, scale, top)
    last = median(one.values[-1] for one in ones)
    words = f"{name}, {len(ones)} processes: at most {_shown(unit, high)}"
    words += f", at the end {_shown(unit, last)}"
    return f"<div><h3>{escaped(name, 60)}</h3>" + chart(
        marks,
        label=words,
        x=[(0, seconds(begin)), (1, seconds(end))],
        y=[(0, "0"), (1, _shown(unit, top))],
        height=_HEIGHT,
    ) + "</div>"  # fmt: skip


def _band(ones: Sequence[Counter], begin: float, scale: float, top: float) -> str:
    """Return the least, the median and the most of many processes, in equal bins."""
    bins: list[list[float]] = [[] for _ in range(_BINS)]
    for one in ones:
        for at, value in zip(one.times_s, one.values, strict=True):
            bins[min(_BINS - 1, int((at - begin) / scale * _BINS))].append(value)
    known = [(at, sorted(values)) for at, values in enumerate(bins) if values]
    across = [((at + 0.5) / _BINS * WIDTH, values) for at, values in known]
    above = [(x, _HEIGHT * (1 - values[-1] / top)) for x, values in across]
    below = [(x, _HEIGHT * (1 - values[0] / top)) for x, values in reversed(across)]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in above + below)
    middle = [(x, _HEIGHT * (1 - values[len(values) // 2] / top)) for x, values in across]
    return f'<path fill="{PALETTE[0]}" fill-opacity=".25" d="M{path}z"/>' + line(
        middle, color=PALETTE[0]
    )


def _shown(unit: str, value: float | None) -> str:
    if unit == "share":
        return percent(value)
    return f"{number(value)}{unit}"
