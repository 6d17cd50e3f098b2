"""Section 8: all processes over time, and one step of it as a picture that needs no script.

The picture has no ids, no classes and no colours of its own for text, so that a notebook can show
many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rlprof_report._page._chart import legend, seconds_axis
from rlprof_report._page._color import NOTHING, OURS, ink
from rlprof_report._page._table import section, step_window
from rlprof_report._page._text import escaped, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof_report.values import Analysis, Lane
    from rlprof_report.values.step import Step

_MOST_NAMES = 16
"""Names in the key."""
_BUTTONS = (
    ("before", "\u2039 step", "The step before"),
    ("after", "step \u203a", "The step after"),
    ("all", "all", "The whole run"),
    ("in", "+", "Shorter time"),
    ("out", "\u2212", "Longer time"),
    ("taller", "taller rows", "Taller rows"),
    ("lower", "shorter rows", "Shorter rows"),
)
_MOST = 48
"""Rows in a picture; of roles with more processes, those that are busy longest and shortest."""
_MOST_BARS = 3000
_WIDE, _LABELS, _ROW, _TOP = 960, 150, 18, 22


def gantt(analysis: Analysis, chosen: Sequence[Step], colors: Mapping[str, str]) -> str:
    """Return the section: the still picture, and the canvas that takes its place."""
    if not chosen or not analysis.lanes:
        return ""
    svg, hidden = still(analysis, chosen[0], colors)
    more = f" {hidden:,} processes are left out." if hidden else ""
    buttons = "".join(
        f'<button type="button" data-do="{name}" aria-label="{words}">{text}</button>'
        for name, text, words in _BUTTONS
    )
    shown = _longest(analysis, colors)
    if analysis.touches:
        shown["what rlprof itself does"] = OURS
    body = (
        f'<figure id="still"><div class="wide">{svg}</div><figcaption>From spans. '
        f"{escaped(step_window(chosen[0]))}, all processes.{more}</figcaption></figure>"
        f'<figure id="gantt" hidden><div class="bar">{buttons}<output></output></div>'
        f'<div class="stage"><canvas tabindex="0" role="img" aria-label="Phases of '
        f'{len(analysis.lanes):,} processes over time; the tables above hold the same times">'
        f'</canvas><div class="tip" hidden></div></div><figcaption>From spans, all steps. Drag to '
        "move; Ctrl and the wheel, two fingers, or + and &minus; to zoom; a double click shows "
        "the step; the arrow keys move.</figcaption></figure>"
    )
    key = legend(shown.items())
    if (hidden := len(colors) - _MOST_NAMES) > 0:
        key += f'<p class="note">{hidden:,} shorter ones are not in this key.</p>'
    return section("gantt-of-all", "All processes", body + key)


def _longest(analysis: Analysis, colors: Mapping[str, str]) -> dict[str, str]:
    times = dict.fromkeys(colors, 0.0)
    for lane in analysis.lanes:
        for name, start, end in lane.bars:
            times[name] += end - start
    kept = set(sorted(times, key=lambda name: -times[name])[:_MOST_NAMES])
    return {name: color for name, color in colors.items() if name in kept}


@attrs.frozen
class _Row:
    """A process and its bars in the step: (name, start, end, depth)."""

    title: str
    bars: tuple[tuple[str, float, float, int], ...]


def still(analysis: Analysis, step: Step, colors: Mapping[str, str]) -> tuple[str, int]:
    """Return the picture as SVG, and how many processes it leaves out."""
    begin, end = step.start_s, step.start_s + step.seconds
    there = [row for lane in analysis.lanes if (row := _row(analysis, lane, begin, end)).bars]
    rows = _some(there)
    high = _TOP + len(rows) * _ROW + 4
    scale = (_WIDE - _LABELS) / (step.seconds or 1.0)
    drawn = [_axis(step, scale, high)]
    left = _MOST_BARS
    for at, row in enumerate(rows):
        y = _TOP + at * _ROW
        drawn.append(
            f'<text x="{_LABELS - 8}" y="{y + 12}" text-anchor="end">'
            f"{escaped(row.title, 24)}</text>"
        )
        for name, start, stop, depth in row.bars[:left]:
            x = _LABELS + (max(start, begin) - begin) * scale
            wide = max(0.5, (min(stop, end) - max(start, begin)) * scale)
            tall = max(4, _ROW - 3 - depth * 5)
            color = OURS if name.startswith("rlprof: ") else colors.get(name, NOTHING)
            label = escaped(f"{row.title} · {name} · {seconds(stop - start)}")
            drawn.append(
                f'<rect x="{x:.1f}" y="{y + _ROW - 2 - tall}" width="{wide:.1f}" height="{tall}" '
                f'fill="{color}"><title>{label}</title></rect>'
            )
            letters = int(wide / 6.6)
            if letters >= 4 and depth == 0:
                drawn.append(
                    f'<text x="{x + 4:.1f}" y="{y + 12}" fill="{ink(color)}">'
                    f"{escaped(name, letters)}</text>"
                )
        left -= min(left, len(row.bars))
    words = f"Step {step.step} over {len(rows)} processes, {seconds(step.seconds)}"
    svg = (
        f'<svg viewBox="0 0 {_WIDE} {high}" width="{_WIDE}" height="{high}" role="img" '
        f'aria-label="{escaped(words)}" style="max-width:100%;height:auto;font:11px system-ui,'
        f'sans-serif" fill="currentColor">{"".join(drawn)}</svg>'
    )
    return svg, len(there) - len(rows)


def _axis(step: Step, scale: float, high: int) -> str:
    parts = []
    for value, words in seconds_axis(step.seconds, 8):
        x = _LABELS + value * scale
        parts.append(
            f'<path d="M{x:.1f} {_TOP - 4}V{high}" stroke="currentColor" stroke-opacity=".15"/>'
            f'<text x="{x:.1f}" y="11" text-anchor="middle" fill-opacity=".7">'
            f"{words}</text>"
        )
    return "".join(parts)


def _row(analysis: Analysis, lane: Lane, begin: float, end: float) -> _Row:
    """Return the bars of *lane* between *begin* and *end*, and those of rlprof there."""
    touches = [
        (f"rlprof: {touch.what}", touch.start_s, touch.end_s)
        for touch in analysis.touches
        if touch.process == lane.process
    ]
    found: list[tuple[str, float, float, int]] = []
    open_: list[float] = []
    for name, start, stop in sorted([*lane.bars, *touches], key=lambda bar: (bar[1], -bar[2])):
        if stop <= begin or start >= end:
            continue
        while open_ and open_[-1] <= start:
            open_.pop()
        found.append((name, start, stop, len(open_)))
        open_.append(stop)
    return _Row(lane.title, tuple(found))


def _some(rows: Sequence[_Row]) -> list[_Row]:
    """Return at most _MOST rows: of large roles those that are busy longest and shortest."""
    if len(rows) <= _MOST:
        return list(rows)
    roles: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        roles.setdefault(row.title.split(" ")[0], []).append(at)
    share = max(2, _MOST // len(roles))
    kept: set[int] = set()
    for members in roles.values():
        ordered = sorted(members, key=lambda at: sum(bar[2] - bar[1] for bar in rows[at].bars))
        take = min(len(ordered), share)
        kept.update(ordered[: take // 2], ordered[len(ordered) - (take - take // 2) :])
    return [rows[at] for at in sorted(kept)][:_MOST]
