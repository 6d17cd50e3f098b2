"""Section 8: all processes over time; a still picture of one step where no script runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._chart import legend
from rlprof_report._page._color import OURS
from rlprof_report._page._still import still
from rlprof_report._page._table import section, step_window
from rlprof_report._page._text import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_report._page._chosen import Chosen
    from rlprof_report.values import Analysis

_MOST = 16
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


def gantt(analysis: Analysis, chosen: Chosen, colors: Mapping[str, str]) -> str:
    """Return the section: the still picture, and the canvas that takes its place."""
    if chosen.slow is None or not analysis.lanes:
        return ""
    svg, hidden = still(analysis, chosen.slow, colors)
    more = f" {hidden:,} processes are left out." if hidden else ""
    buttons = "".join(
        f'<button type="button" data-do="{name}" aria-label="{words}">{text}</button>'
        for name, text, words in _BUTTONS
    )
    shown = _longest(analysis, colors)
    if analysis.touches:
        shown["rlprof's own starts, stops and exports"] = OURS
    body = (
        f'<figure id="still"><div class="wide">{svg}</div><figcaption>From spans. '
        f"{escaped(step_window(chosen.slow))}, all processes.{more}</figcaption></figure>"
        f'<figure id="gantt" hidden><div class="bar">{buttons}<output></output></div>'
        f'<div class="stage"><canvas tabindex="0" role="img" aria-label="Phases of '
        f'{len(analysis.lanes):,} processes over time; the tables above hold the same times">'
        f'</canvas><div class="tip" hidden></div></div><figcaption>From spans, all steps. Drag to '
        "move; Ctrl and the wheel, two fingers, or + and &minus; to zoom; a double click shows "
        "the step; the arrow keys move.</figcaption></figure>"
    )
    key = legend(shown.items())
    if len(colors) > _MOST:
        key += f'<p class="note">{len(colors) - _MOST:,} shorter ones are not in this key.</p>'
    return section("gantt-of-all", "All processes", body + key)


def _longest(analysis: Analysis, colors: Mapping[str, str]) -> dict[str, str]:
    """Return the names that take most time, with their colours."""
    times = dict.fromkeys(colors, 0.0)
    for lane in analysis.lanes:
        for name, start, end in lane.bars:
            times[name] += end - start
    kept = set(sorted(times, key=lambda name: -times[name])[:_MOST])
    return {name: color for name, color in colors.items() if name in kept}
