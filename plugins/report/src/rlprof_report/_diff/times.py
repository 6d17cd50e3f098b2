"""The step and its phases in B against A, and the rank that a change comes from."""

from __future__ import annotations

from collections import Counter
from math import log
from statistics import median
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._diff.effect import Series, effect
from rlprof_report._figures.path import BETWEEN
from rlprof_report.values.diff import Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report._diff.part import Part
    from rlprof_report.values.step import Ranks

FEWEST = 8
"""The least number of steps of each side for an interval."""
_FEWEST_AT_TOKENS = 3
"""With fewer steps, nothing says how the time grows with tokens."""
_ALARM = 0.05
"""How often equal runs may be called different: once for the step, once for all phases together."""
_LEAST_S = 1e-6
"""Spans are exact to a microsecond."""
_FINEST_S = 1e-9
_GAP = 0.01
"""A shorter time between phases, as a share of the step, is not compared."""


def step_change(a: Part, b: Part, *, by_tokens: bool) -> Change:
    """Compare whole steps."""
    times = [[step.seconds for _, step in part.compared()] for part in (a, b)]
    return _judged([_change("step", *map(_series, (a, b), times), by_tokens=by_tokens)])[0]


def phase_changes(a: Part, b: Part, *, by_tokens: bool, of_slowest: bool) -> tuple[Change, ...]:
    """Compare each phase that either has, in the order of A's steps, then the time in none."""
    if not (a.compared() and b.compared()):
        return ()
    times = [
        [part.phases(step, of_slowest=of_slowest) for _, step in part.compared()] for part in (a, b)
    ]
    names = dict.fromkeys(name for side in times for phases in side for name in phases)
    changes = []
    gap_s = [_GAP * sum(step.seconds for _, step in part.compared()) for part in (a, b)]
    for name in sorted(names, key=lambda name: name == BETWEEN):
        left, right = (
            _series(part, [phases.get(name, 0.0) for phases in side])
            for part, side in zip((a, b), times, strict=True)
        )
        sums = float(left.seconds.sum()), float(right.seconds.sum())
        if name == BETWEEN and sums[0] <= gap_s[0] and sums[1] <= gap_s[1]:
            continue
        change = _change(name, left, right, by_tokens=by_tokens)
        changes.append(_one_sided(change, a, b))
    return tuple(attrs.evolve(one, rank=_rank_of(one, a, b)) for one in _judged(changes))


def _one_sided(change: Change, a: Part, b: Part) -> Change:
    """Say whether a side without time in a phase has that phase."""
    if change.a_s is not None and change.b_s is None:
        if b.has_phase(change.name):
            return attrs.evolve(change, state="about 0 in B", b_s=0.0)
        return attrs.evolve(change, state="only A")
    if change.b_s is not None and change.a_s is None:
        if a.has_phase(change.name):
            return attrs.evolve(change, state="about 0 in A", a_s=0.0)
        return attrs.evolve(change, state="only B")
    return change


def _series(part: Part, seconds: Sequence[float]) -> Series:
    rows = [
        (taken, step.tokens, at)
        for taken, (at, step) in zip(seconds, part.compared(), strict=True)
        if taken > _LEAST_S
    ]
    return Series(*np.array(rows, dtype=np.float64).reshape(-1, 3).T)


def _change(name: str, left: Series, right: Series, *, by_tokens: bool) -> Change:
    fewest = min(len(left.seconds), len(right.seconds))
    by_tokens = by_tokens and fewest >= _FEWEST_AT_TOKENS
    if not by_tokens:
        left, right = (attrs.evolve(one, tokens=np.ones_like(one.tokens)) for one in (left, right))
    change = Change(
        name=name,
        state="too few steps",
        a_s=_median(left),
        b_s=_median(right),
        a_steps=len(left.seconds),
        b_steps=len(right.seconds),
        basis="equal tokens" if by_tokens else "seconds",
    )
    if fewest >= FEWEST:
        return attrs.evolve(change, state="no difference seen", **effect(left, right))
    if by_tokens:
        found = effect(left, right)
        return attrs.evolve(change, **{name: found[name] for name in ("a_s", "b_s", "change")})
    if change.a_s and change.b_s:
        return attrs.evolve(change, change=change.b_s / change.a_s - 1)
    return change


def _judged(changes: Sequence[Change]) -> list[Change]:
    """Mark the changes that are real, by Holm's method: more phases need clearer changes."""
    judged = list(changes)
    found = sorted((one.p, place) for place, one in enumerate(changes) if one.p is not None)
    for done, (p, place) in enumerate(found):
        if p > _ALARM / (len(found) - done):
            break
        slower = (judged[place].change or 0) > 0
        judged[place] = attrs.evolve(judged[place], state="slower" if slower else "faster")
    return judged


def _median(times: Series) -> float | None:
    return float(np.median(times.seconds)) if len(times.seconds) else None


def _rank_of(change: Change, a: Part, b: Part) -> str:
    """Name the rank that explains half of *change*: of B where B is slower, else of A."""
    if change.state not in ("slower", "faster") or change.change is None:
        return ""
    fast, slow = (a, b) if change.state == "slower" else (b, a)
    before, after = (_slowest(part, change.name) for part in (fast, slow))
    grown = _behind(after) - _behind(before)
    names = Counter(one.who for one in after if not one.meets)
    for name, steps in names.most_common(1):
        if steps * 2 > len(after) and grown >= abs(log(1 + change.change)) / 2:
            return name
    return ""


def _slowest(part: Part, phase: str) -> list[Ranks]:
    steps = [[one for one in step.ranks if one.phase == phase] for _, step in part.compared()]
    return [max(own, key=lambda one: one.wait_s) for own in steps if own]


def _behind(slowest: list[Ranks]) -> float:
    """Return how far the slowest is usually behind the others, as the log of a ratio."""
    ratios = [max(one.max_s, _FINEST_S) / max(one.max_s - one.wait_s, _FINEST_S) for one in slowest]
    logs = [0.0 if one.meets else log(ratio) for one, ratio in zip(slowest, ratios, strict=True)]
    return median(logs or [0.0])
