"""What is odd about the lengths of steps, whatever the cause: they grow, or some stand out.

Steps that recording touched are in no finding, so the longest of them is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report._findings.words import numbered
from rlprof_report._plain import argument, secs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step

_LEAST = 12
"""Fewer clean steps show neither."""
_TREND = 1.3
"""The least ratio of the longer third of the steps, first or last, to the other."""
_FEWEST = 8
"""What `rlprof diff` needs on each side, and so the least third where there are twice as many."""
_STEADY = 0.6
"""The least rank correlation of lengths and steps."""
_OUT, _OUT_S = 2.0, 0.2
"""A step that stands out takes at least this many medians, and this many seconds more."""
_LONG, _LONG_S = 0.5, 1.0
"""A touched step is named if it takes this share of a median longer, and these seconds."""


def odd_lengths(analysis: Analysis, *, has_findings: bool) -> tuple[str, str]:
    """Return what is odd about the lengths of clean steps, and how to look closer; empty: nothing.

    Findings name steps that stand out, but no trend.
    """
    steps = [one for one in analysis.steps if one.state == "clean"]
    if len(steps) < _LEAST:
        return "", ""
    found = _trend(analysis, steps)
    if found is None and not has_findings:
        found = _standing_out(analysis, steps)
    return found or ("", "")


def long_though_touched(analysis: Analysis) -> tuple[str, str] | None:
    """Name touched steps that take far longer than recording explains, and how to look closer."""
    usual = analysis.clean.median_s
    if usual is None:
        return None
    least = max(_LONG * usual, _LONG_S)
    out = [
        one for one in analysis.steps
        if one.state == "touched" and one.seconds - usual >= max(least, 2 * _touched_s(one))
    ]  # fmt: skip
    if not out:
        return None
    longest, take = _longest(out)
    words = f"{take} {secs(longest.seconds)}, far more than the recording that touched it."
    return words, f"To see why: rlprof why {argument(analysis.run)} --step {longest.step}"


def _touched_s(step: Step) -> float:
    end_s = step.start_s + step.seconds
    return sum(min(one.end_s, end_s) - max(one.start_s, step.start_s) for one in step.touches)


def _trend(analysis: Analysis, steps: Sequence[Step]) -> tuple[str, str] | None:
    seconds = np.array([one.seconds for one in steps])
    part = len(steps) // 3
    part = max(part, _FEWEST) if len(steps) >= 2 * _FEWEST else part
    first, last = steps[:part], steps[-part:]
    before, after = (float(np.median([one.seconds for one in part])) for part in (first, last))
    ranks = np.argsort(np.argsort(seconds))
    steady = float(np.corrcoef(ranks, np.arange(len(steps)))[0, 1])
    if max(before, after) < _TREND * min(before, after) or abs(steady) < _STEADY:
        return None
    tokens = [float(np.median([one.tokens for one in part])) for part in (first, last)]
    with_tokens = ""
    if all(tokens) and max(tokens) > 1.1 * min(tokens):
        with_tokens = f" Their tokens go from {tokens[0]:,.0f} to {tokens[1]:,.0f}."
    how = "longer" if after > before else "shorter"
    run = argument(analysis.run)
    parts = [f"{run}:{part[0].step}-{part[-1].step}" for part in (first, last)]
    words = (
        f"Steps get {how}: {secs(before)} in {numbered([one.step for one in first])}, "
        f"{secs(after)} in {numbered([one.step for one in last])}"
        f"{_where(first, last, after - before)}.{with_tokens}"
    )
    if part < _FEWEST:
        return words, ""
    return words, f"To see which phases changed: rlprof diff {' '.join(parts)}"


def _where(first: Sequence[Step], last: Sequence[Step], more_s: float) -> str:
    """Name the phase that took most of *more_s*, if one did."""
    for name in dict.fromkeys(phase.name for one in (*first, *last) for phase in one.phases):
        before, after = (np.median([one.took(name) for one in part]) for part in (first, last))
        if (after - before) / more_s > 1 / 2:
            return f", most of it in {name}"
    return ""


def _standing_out(analysis: Analysis, steps: Sequence[Step]) -> tuple[str, str] | None:
    usual = float(np.median([one.seconds for one in steps]))
    out = [one for one in steps if one.seconds >= max(_OUT * usual, usual + _OUT_S)]
    if not out:
        return None
    longest, take = _longest(out)
    rest, more_s = [one for one in steps if one not in out], np.median([s.seconds for s in out])
    times = f"{longest.seconds / usual:.1f} times the median"
    words = f"{take} {times}{_where(rest, out, float(more_s) - usual)}."
    return words, f"To see why: rlprof why {argument(analysis.run)} --step {longest.step}"


def _longest(out: Sequence[Step]) -> tuple[Step, str]:
    """Return the longest of *out*, and the beginning of a sentence about all of them."""
    take = "take up to" if len(out) > 1 else "takes"
    who = numbered([one.step for one in out]).capitalize()
    return max(out, key=lambda one: one.seconds), f"{who} {take}"
