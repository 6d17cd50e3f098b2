"""The step and its phases in B against A."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._diff.effect import Series, effect
from rlprof_report._diff.slowest import slowest_of
from rlprof_report._figures.path import BETWEEN
from rlprof_report.values.diff import Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report._diff.part import Part

FEWEST = 8
"""The least number of steps of each side for an interval."""
_FEWEST_AT_TOKENS = 3
"""With fewer steps, nothing says how the time grows with tokens."""
_ALARM = 0.05
"""How often like runs may be called different: once for the step, once for all phases together."""
_LEAST_S = 1e-6
"""Spans are exact to a microsecond."""
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
    for name in sorted(names, key=lambda name: name == BETWEEN):
        left, right = (
            _series(part, [phases.get(name, 0.0) for phases in side])
            for part, side in zip((a, b), times, strict=True)
        )
        if name == BETWEEN and not any(map(_is_long, (a, b), (left, right))):
            continue
        change = _change(name, left, right, by_tokens=by_tokens)
        if (change.a_s is None) != (change.b_s is None):
            change = attrs.evolve(change, state="only B" if change.a_s is None else "only A")
        changes.append(change)
    return tuple(attrs.evolve(one, rank=slowest_of(one, a, b)) for one in _judged(changes))


def _series(part: Part, seconds: Sequence[float]) -> Series:
    """Return the times of one thing in those steps of *part* that have it."""
    rows = [
        (taken, step.tokens, at)
        for taken, (at, step) in zip(seconds, part.compared(), strict=True)
        if taken > _LEAST_S
    ]
    return Series(*np.array(rows, dtype=np.float64).reshape(-1, 3).T)


def _is_long(part: Part, times: Series) -> bool:
    steps_s = sum(step.seconds for _, step in part.compared())
    return float(times.seconds.sum()) > _GAP * steps_s


def _change(name: str, left: Series, right: Series, *, by_tokens: bool) -> Change:
    a_steps, b_steps = len(left.seconds), len(right.seconds)
    fewest = min(a_steps, b_steps)
    by_tokens = by_tokens and fewest >= _FEWEST_AT_TOKENS
    if not by_tokens:
        left, right = (attrs.evolve(one, tokens=np.ones_like(one.tokens)) for one in (left, right))
    change = Change(
        name=name,
        state="too few steps",
        a_s=_median(left),
        b_s=_median(right),
        a_steps=a_steps,
        b_steps=b_steps,
        basis="equal tokens" if by_tokens else "seconds",
    )
    if fewest >= FEWEST:
        found = attrs.asdict(effect(left, right)) | ({} if by_tokens else {"exponent": 0.0})
        return attrs.evolve(change, state="no difference seen", **found)
    if by_tokens:
        return attrs.evolve(change, change=effect(left, right).change)
    if change.a_s and change.b_s:
        return attrs.evolve(change, change=change.b_s / change.a_s - 1)
    return change


def _judged(changes: Sequence[Change]) -> list[Change]:
    """Say which changes are real, by Holm's method: the more there are, the clearer each."""
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
