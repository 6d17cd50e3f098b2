"""The step and its phases in B against A."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._diff.effect import effect
from rlprof_report._diff.part import phase_seconds, series
from rlprof_report.values.diff import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlprof_report._diff.effect import Effect, Series
    from rlprof_report._diff.part import Part
    from rlprof_report.values import Step
    from rlprof_report.values.diff import ChangeState

FEWEST = 8
"""The least number of clean steps of each side."""
_ALARM = 0.05
"""How often like runs may be called different: once for the step, once for all phases together."""


def step_change(a: Part, b: Part, *, by_tokens: bool) -> Change:
    """Compare whole steps."""
    return _judged([_change("step", a, b, lambda step: step.seconds, by_tokens=by_tokens)])[0]


def phase_changes(a: Part, b: Part, *, by_tokens: bool) -> tuple[Change, ...]:
    """Compare each phase that either has, in the order of A's steps."""
    names = [name for part in (a, b) for _, step in part.clean() for name in phase_seconds(step)]

    def of(name: str) -> Callable[[Step], float]:
        return lambda step: phase_seconds(step).get(name, 0.0)

    changes = [_change(name, a, b, of(name), by_tokens=by_tokens) for name in dict.fromkeys(names)]
    return tuple(_judged(changes))


def _change(
    name: str, a: Part, b: Part, seconds: Callable[[Step], float], *, by_tokens: bool
) -> tuple[Change, Effect | None]:
    left, right = (series(part.clean(), seconds, by_tokens=by_tokens) for part in (a, b))
    counts = len(left.seconds), len(right.seconds)
    state: ChangeState = "too few steps"
    if min(counts) == 0 < max(counts) and min(len(a.clean()), len(b.clean())) >= FEWEST:
        state = "only A" if counts[0] else "only B"
    change = Change(
        name=name,
        state=state,
        a_s=_median(left),
        b_s=_median(right),
        a_steps=counts[0],
        b_steps=counts[1],
        basis="equal tokens" if by_tokens else "seconds",
    )
    if min(counts) < FEWEST:
        return change, None
    found = effect(left, right)
    change = attrs.evolve(
        change,
        state="no difference seen",
        a_samples=found.a_samples,
        b_samples=found.b_samples,
        exponent=found.exponent if by_tokens else 0.0,
        change=found.change,
        low=found.low,
        high=found.high,
        visible=found.visible,
    )
    return change, found


def _judged(changes: Sequence[tuple[Change, Effect | None]]) -> list[Change]:
    """Say which changes are real, by Holm's method: the more there are, the clearer each."""
    found = sorted((one.p, place) for place, (_, one) in enumerate(changes) if one is not None)
    judged = [change for change, _ in changes]
    for done, (p, place) in enumerate(found):
        if p > _ALARM / (len(found) - done):
            break
        slower = (judged[place].change or 0) > 0
        judged[place] = attrs.evolve(judged[place], state="slower" if slower else "faster")
    return judged


def _median(times: Series) -> float | None:
    return float(np.median(times.seconds)) if len(times.seconds) else None
