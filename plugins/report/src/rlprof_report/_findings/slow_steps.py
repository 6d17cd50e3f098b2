"""Steps that are far slower than the others, with no cause that is rare enough to explain it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._figures.path import BETWEEN
from rlprof_report._findings.facts import Measure
from rlprof_report._findings.weigh import Row, Weighed, weigh_one
from rlprof_report._plain import secs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report._findings.facts import Context
    from rlprof_report.values.step import Step

_SLOW, _SLOW_S = 1.5, 0.5
"""A step is slow without a known cause if it takes this many times the median, and this many
seconds more; if it is the only one, twice as many."""
_ALL, _LARGE = 3, 0.05
"""If this many phases of this share of a step are all slow, the cause is outside of them."""
_REGULAR = 4
"""A phase that occurs in at least a quarter of the steps does not make a step unusual."""


def unexplained(
    steps: Sequence[Step],
    rows: Sequence[Row],
    weighed: Sequence[Weighed],
    usual_s: float,
    context: Context,
) -> list[Weighed]:
    """Name steps that are far slower than the others, though no cause is rare enough.

    A cause that all steps have may take far longer in these; else the phase that grew is named.
    """
    explained = {step for one in weighed if one.is_rare for step in one.steps}
    seconds = np.array([one.seconds for one in steps])
    spread = float(np.median(np.abs(seconds - usual_s))) * 1.4826
    slow = [
        one
        for one in steps
        if one.seconds - usual_s >= max((_SLOW - 1) * usual_s, _SLOW_S, 6 * spread)
        and one.step not in explained
    ]
    if not slow or len(steps) < 5:
        return []
    if len(slow) == 1 and slow[0].seconds - usual_s < 2 * _SLOW_S:
        return []
    typical = sorted(slow, key=lambda one: one.seconds)[len(slow) // 2]
    measure = slow_step(typical, steps, usual_s, context)
    took = [one.took(measure.phase) for one in steps]
    if measure.phase and _REGULAR * len(slow) >= len(steps) and not np.median(took):
        return []
    grown = weigh_one(typical, rows[steps.index(typical)], steps, rows)
    if grown and grown[0].per_step_s >= measure.seconds / 2:
        measure = grown[0].measure
    else:
        alike = [slow_step(one, steps, usual_s, context) for one in slow]
        slow = [one for one, found in zip(slow, alike, strict=True)
                if (found.phase, found.rank) == (measure.phase, measure.rank)]  # fmt: skip
    share = measure.seconds / typical.seconds
    numbers = tuple(one.step for one in slow)
    total = sum(one.seconds - usual_s for one in slow) / len(steps)
    key = measure.cause, ""
    return [Weighed(measure, key, typical.step, share, numbers, total, is_rare=True)]


def slow_step(step: Step, peers: Sequence[Step], usual_s: float, context: Context) -> Measure:
    """Name the rank that holds up a slow step, or the phase that takes longer than in others."""
    more, late = step.seconds - usual_s, _late(step, peers, context)
    if late is not None and late.seconds >= more / 2:
        seconds = min(late.seconds, more)
        return attrs.evolve(late, seconds=seconds, bound_s=seconds)
    grown, rare, times = {}, set(), []
    for phase in step.phases:
        own = [one.took(phase.name) for one in peers]
        usual = float(np.median(own))
        grown[phase.name] = phase.seconds - usual
        rare |= {phase.name} if 2 * np.count_nonzero(own) < len(own) else set()
        times += [phase.seconds / usual] if usual >= _LARGE * usual_s else []
    gap = step.unaccounted_s - float(np.median([one.unaccounted_s for one in peers]))
    grown["the time between phases"] = gap
    name = max(grown, key=lambda one: grown[one])
    cause = "The cause is unclear."
    if len(times) >= _ALL and min(times) >= _SLOW:
        cause = "All phases take longer in it, as when another program uses the host."
    why = f"takes {secs(grown[name])} more than usual, the step {secs(more)}. {cause}"
    if name in rare:
        why = f"takes {secs(grown[name])}, and most steps have no such phase."
    seconds = min(grown[name], more) if grown[name] > 0 else more
    return Measure(
        cause="slow step",
        seconds=seconds,
        bound_s=seconds,
        sentence=f"{name} {why}",
        where=(f"step {step.step}, {name}",),
        role=context.processes[context.leader].target.role,
        phase="" if name == "the time between phases" else name,
    )


def _late(step: Step, peers: Sequence[Step], context: Context) -> Measure | None:
    """Find a rank for which the others wait between phases, longer than in *peers*."""
    found = None
    for place, process in enumerate(context.processes):
        who = context.name(place)
        usual_s = float(np.median([_between_s(one, who) for one in peers]))
        more_s = _between_s(step, who) - usual_s
        if place != context.leader and more_s > (found.seconds if found else 0.0):
            found = Measure(
                cause="slow step",
                seconds=more_s,
                sentence=f"The others wait {secs(more_s)} longer than usual for {who}, which is "
                "between phases.",
                where=(f"step {step.step}, {who} between phases",),
                role=process.target.role,
                rank=process.target.rank,
            )
    return found


def _between_s(step: Step, who: str) -> float:
    return sum(one.seconds for one in step.path if (one.what, one.where) == (BETWEEN, who))
