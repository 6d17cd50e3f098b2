"""Section 2: where the time of every step goes, as stacked bars and a table of phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rlprof_report._page._chart import WIDTH, chart, keyed, legend, seconds_axis
from rlprof_report._page._color import NOTHING
from rlprof_report._page._table import caption, clean_window, figure, section, tabled
from rlprof_report._page._text import NONE, escaped, median, numbers, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step

MOST = 400
"""Bars in the picture; of more steps, each bar is the mean of several."""
_HEIGHT = 240
_AT_ONCE = "two phases at once"
_NO_PHASE = "no phase"
_MARKED = {
    "recorded": (45, "a window was open"),
    "touched": (-45, "what rlprof itself does overlaps it"),
    "warm-up": (90, "the first steps"),
    "unfinished": (0, "it has not ended, or some of its spans are lost"),
}
"""State of a step → the slope of its hatching, and why."""


@attrs.frozen
class _Bar:
    """One step, or the mean of several."""

    title: str
    state: str
    parts: Mapping[str, float]
    """Phase → seconds; together the length of the step."""
    slowest: Step


def where_the_time_goes(analysis: Analysis, colors: Mapping[str, str]) -> str:
    """Return the section."""
    if not analysis.steps:
        return ""
    each = -(-len(analysis.steps) // MOST)
    bars = [_bar(analysis.steps[at : at + each]) for at in range(0, len(analysis.steps), each)]
    shown = {**colors, _AT_ONCE: "#555", _NO_PHASE: NOTHING}
    used = [name for name in shown if any(bar.parts.get(name, 0) > 0 for bar in bars)]
    window = f"All {len(analysis.steps):,} steps"
    if each > 1:
        window += f"; each bar is the mean of {each} steps, with a line at the slowest"
    marked = analysis.clean.left_out
    marks = "; ".join(f"{state}: {numbers(steps)}" for state, steps in marked.items())
    picture = figure(
        _picture(bars, used, shown, analysis.steps[0].step)
        + legend((name, shown[name]) for name in used)
        + _hatches(marked),
        caption((1, 13), window, f"Hatched: {marks}" if marks else ""),
    )
    return section(
        "steps",
        "Where the time goes",
        picture + _phases(analysis, colors) + _overlaps(analysis) + _bubbles(analysis),
    )


def _bar(steps: Sequence[Step]) -> _Bar:
    parts: dict[str, float] = {}
    for step in steps:
        for name, value in _parts(step).items():
            parts[name] = parts.get(name, 0.0) + value / len(steps)
    states = [step.state for step in steps if step.state != "clean"]
    state = next((name for name in _MARKED if name in states), "")
    first, last = steps[0].step, steps[-1].step
    title = f"step {first}" if len(steps) == 1 else f"steps {first} to {last}, mean"
    return _Bar(title, state, parts, max(steps, key=lambda step: step.seconds))


def _parts(step: Step) -> dict[str, float]:
    """Return the times that add up to the step: where phases overlap, each without the other."""
    parts = {phase.name: phase.seconds for phase in step.phases}
    for overlap in step.overlaps:
        for name in (overlap.left, overlap.right):
            if name in parts:
                parts[name] = max(0.0, parts[name] - overlap.seconds)
    rest = step.seconds - step.unaccounted_s - sum(parts.values())
    return {**parts, _AT_ONCE: rest if rest > 1e-6 else 0.0, _NO_PHASE: step.unaccounted_s}


def _picture(
    bars: Sequence[_Bar], names: Sequence[str], colors: Mapping[str, str], first: int
) -> str:
    heights = sorted(bar.slowest.seconds for bar in bars)
    high = heights[-1]
    usual = heights[int((len(heights) - 1) * 0.9)]
    top = (usual * 1.5 if high > usual * 3 else high) or 1.0
    pitch = WIDTH / len(bars)
    gap = 4.0 if pitch > 16 else pitch * 0.2 if pitch > 4 else 0.0
    paths: dict[str, list[str]] = {name: [] for name in names}
    over: dict[str, list[str]] = {}
    pointed, most = [], []
    for at, bar in enumerate(bars):
        x, y = at * pitch + gap / 2, float(_HEIGHT)
        for name in names:
            tall = min(bar.parts.get(name, 0.0) / top * (_HEIGHT - 8), y)
            if tall > 0.05:
                y -= tall
                paths[name].append(
                    f"M{x:.1f} {y:.1f}h{pitch - gap:.1f}v{tall:.1f}h{gap - pitch:.1f}z"
                )
        if bar.title.startswith("steps"):
            tall = min(bar.slowest.seconds / top * (_HEIGHT - 8), _HEIGHT - 1)
            most.append(f"M{x:.1f} {_HEIGHT - tall:.1f}h{pitch - gap:.1f}")
        whole = f"M{x:.1f} {y:.1f}h{pitch - gap:.1f}V{_HEIGHT}h{gap - pitch:.1f}z"
        if bar.state:
            over.setdefault(bar.state, []).append(whole)
        pointed.append(f'<path class="hit" d="{whole}"><title>{_label(bar, names)}</title></path>')
    drawn = "".join(
        f'<path fill="{colors[name]}" d="{"".join(d)}"/>' for name, d in paths.items() if d
    )
    hatched = "".join(f'<path class="over {state}" d="{"".join(d)}"/>' for state, d in over.items())
    if most:
        hatched += f'<path class="most" d="{"".join(most)}"/>'
    scale = (_HEIGHT - 8) / _HEIGHT / top
    every = next(each for each in (1, 2, 5, 10, 20, 40, 80) if len(bars) <= each * 12)
    x_ticks = [
        ((at + 0.5) / len(bars), bars[at].title.split()[1]) for at in range(0, len(bars), every)
    ]
    return chart(
        _patterns() + drawn + hatched + "".join(pointed),
        label=f"Time of each step from {first} on, by phase"
        + (f"; bars above {seconds(top)} are cut" if top < high else ""),
        x=x_ticks, y=[(value * scale, words) for value, words in seconds_axis(top, 5)],
        height=_HEIGHT,
    )  # fmt: skip


def _label(bar: _Bar, names: Sequence[str]) -> str:
    lines = [
        f"{bar.title}: {seconds(sum(bar.parts.values()))}{' · ' if bar.state else ''}{bar.state}"
    ]
    if bar.title.startswith("steps"):
        lines.append(f"slowest: step {bar.slowest.step}, {seconds(bar.slowest.seconds)}")
    lines += [f"{name} {seconds(bar.parts[name])}" for name in names if bar.parts.get(name, 0) > 0]
    return "&#10;".join(escaped(words, 80) for words in lines[:12])


def _patterns() -> str:
    made = "".join(
        f'<pattern id="hatch-{state}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate({angle})"><path d="M0 0V6" class="hatch"/></pattern>'
        for state, (angle, _) in _MARKED.items()
    )
    return f"<defs>{made}</defs>"


def _hatches(marked: Mapping[str, Sequence[int]]) -> str:
    items = "".join(
        '<span><svg class="swatch" viewBox="0 0 16 16">'
        f'<path class="over {state}" d="M0 0H16V16H0z"/></svg>{state}: {_MARKED[state][1]}</span>'
        for state in marked
    )
    return f'<p class="legend">{items}</p>' if items else ""


def _phases(analysis: Analysis, colors: Mapping[str, str]) -> str:
    rows = [
        (
            keyed(colors.get(phase.name, NOTHING), phase.name),
            seconds(phase.mean_s),
            percent(phase.share),
            seconds(phase.median_s),
            seconds(phase.p95_s),
            f"{phase.steps:,}",
            escaped(phase.worst or "varies", 60) if phase.wait_s > 0 else NONE,
            seconds(phase.wait_s) if phase.wait_s > 0 else NONE,
        )
        for phase in analysis.phases
    ]
    rest, whole = analysis.no_phase_s, analysis.clean.mean_s
    if rows and whole:
        none = (NONE, NONE, NONE, NONE, NONE)
        rows.append(("no phase", seconds(rest), percent(rest / whole), *none))
    whose = f"phase of {escaped(analysis.whose, 80)}"
    heads = (
        whose, "mean", "share of time", "median", "p95", "steps", "slowest rank", "wait for it",
    )  # fmt: skip
    more = "Without a slowest rank: the phases of ranks are unknown, or ranks meet inside"
    return tabled(heads, rows, (1, 2), clean_window(analysis), more=more)


def _overlaps(analysis: Analysis) -> str:
    pairs: dict[tuple[str, str], list[float]] = {}
    clean = [step for step in analysis.steps if step.state == "clean"]
    for step in clean:
        for one in step.overlaps:
            if one.seconds > 0:
                pairs.setdefault((one.left, one.right), []).append(one.seconds)
    rows = [
        (escaped(left, 60), escaped(right, 60), seconds(median(values)), f"{len(values):,}")
        for (left, right), values in sorted(pairs.items(), key=lambda pair: -sum(pair[1]))[:20]
    ]
    heads, more = ("phase", "overlaps", "median", "steps"), "Time in two phases is counted once"
    return tabled(heads, rows, (1,), clean_window(analysis), more=more, words=(0, 1))


def _bubbles(analysis: Analysis) -> str:
    sums: dict[tuple[str, str], list[float]] = {}
    clean = [step for step in analysis.steps if step.state == "clean" and step.bubbles]
    for step in clean:
        for one in step.bubbles:
            sums.setdefault((one.role, one.cause), []).append(one.device_s)
    rows = [
        (escaped(role, 60), escaped(cause, 80), seconds(sum(values) / len(clean)))
        for (role, cause), values in sorted(sums.items(), key=lambda pair: -sum(pair[1]))
    ]
    heads, window = ("devices of", "idle during", "device-seconds per step"), clean_window(analysis)
    return tabled(heads, rows, (12,), f"Mean of {window}", words=(0, 1))
