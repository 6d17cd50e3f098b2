"""Section 4: the critical path of the slow step and of the median one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._chart import keyed, strip
from rlprof_report._page._color import NOTHING, shade
from rlprof_report._page._table import caption, figure, section, step_window, table
from rlprof_report._page._text import escaped, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof_report.values.step import PathPart, Step

_MOST = 40
_LEAST = 0.001
"""Of the step: what is shorter has no row."""


def critical_path(chosen: Sequence[Step], colors: Mapping[str, str]) -> str:
    """Return the section."""
    return section(
        "path",
        "Critical path",
        "".join(
            _of(name, step, colors)
            for name, step in zip(("slow", "median"), chosen, strict=False)
            if step.path
        ),
    )


def _of(name: str, step: Step, colors: Mapping[str, str]) -> str:
    whole = step.seconds or 1.0
    drawn: list[tuple[str, float, str]] = []
    rows: list[tuple[str, ...]] = []
    longest = sorted((part.seconds for part in step.path), reverse=True)
    least = max(longest[:_MOST][-1], min(longest[0], whole * _LEAST))
    hidden = [part for part in step.path if part.seconds < least]
    for part in step.path:
        color = _color(part, colors)
        words = f"{part.what} {part.where}".strip()
        drawn.append((color, part.seconds / whole, f"{words}: {seconds(part.seconds)}"))
        if part.seconds >= least and len(rows) < _MOST:
            rows.append(
                (
                    keyed(color, part.what),
                    escaped(part.where, 100),
                    seconds(part.start_s - step.start_s),
                    seconds(part.seconds),
                    percent(part.seconds / whole),
                )
            )
    more = ""
    if hidden:
        rest = sum(part.seconds for part in hidden)
        are = "part, {} together, is" if len(hidden) == 1 else "parts, {} together, are"
        more = f"{len(hidden)} shorter {are.format(seconds(rest))} in report.json"
    heads = ("waited for", "where", "begins after", "takes", "of the step")
    title = f"<h3>Step {step.step}, the {name} one</h3>"
    bar = title + strip(drawn, label=f"Critical path of step {step.step}")
    return figure(
        bar + table(heads, rows, words=(0, 1)),
        caption((9,), f"{step_window(step)}; the parts tile it exactly", more),
    )


def _color(part: PathPart, colors: Mapping[str, str]) -> str:
    """Return the colour of its phase: paler for a queue, darker for a tool, grey for no phase."""
    if part.what in colors:
        return colors[part.what]
    phase, _, inside = part.what.rpartition(": ")
    color = colors.get(phase, NOTHING)
    if inside.startswith("queue"):
        return shade(color, 255, 0.55)
    return shade(color, 0, 0.45) if inside.startswith("tool") else color
