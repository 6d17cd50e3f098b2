"""Which steps medians and findings use."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report.values import Clean, PhaseSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report._figures.touches import Touched
    from rlprof_report.values.step import Step, StepState

_WARM_UP = 3
"""At most this many steps at the beginning are left out for being slower than the rest."""
_SLOWER = 1.3


def clean_of(
    steps: Sequence[Step], touched: Touched, *, whole: int, skipped: int = 0
) -> tuple[Clean, list[Step]]:
    """Give each step its state, and list those that are clean.

    The first step of a run is warm-up, and so are the second and third if they are 30 % slower;
    *skipped* steps of the run are not among these. Steps after the first *whole* ones lack spans.
    """
    states: list[StepState] = ["clean"] * len(steps)
    for place in touched.touches:
        states[place] = "touched"
    for place in touched.recorded:
        states[place] = "recorded"
    for place in range(whole, len(steps)):
        states[place] = "unfinished"
    later = [one.seconds for one, state in zip(steps, states, strict=True) if state == "clean"][3:]
    usual = float(np.median(later)) if len(later) >= 3 else None
    for place in range(min(_WARM_UP - skipped, len(steps) - 1)):
        if states[place] != "clean":
            continue
        if place + skipped and (usual is None or steps[place].seconds < _SLOWER * usual):
            break
        states[place] = "warm-up"
    judged = [attrs.evolve(step, state=state) for step, state in zip(steps, states, strict=True)]
    chosen = [one for one in judged if one.state == "clean"]
    left_out: dict[str, tuple[int, ...]] = {}
    for one in judged:
        if one.state != "clean":
            left_out[one.state] = (*left_out.get(one.state, ()), one.step)
    seconds = [one.seconds for one in chosen]
    usual_s, mean_s = (float(f(seconds)) if chosen else None for f in (np.median, np.mean))
    return Clean(tuple(one.step for one in chosen), left_out, usual_s, mean_s), judged


def summaries_of(steps: Sequence[Step], clean: Clean) -> tuple[PhaseSummary, ...]:
    """Sum up each phase over the clean steps, in the order phases come in a step."""
    chosen = [one for one in steps if one.state == "clean"]
    names = dict.fromkeys(phase.name for one in chosen for phase in one.phases)
    found = []
    for name in names:
        seconds = [one.took(name) for one in chosen]
        ended = Counter(p.last for one in chosen for p in one.phases if p.name == name)
        slowest, waits = Counter[str](), []
        for one in chosen:
            own = [r for r in one.ranks if r.phase == name and not r.meets]
            worst = max(own, key=lambda r: r.wait_s, default=None)
            waits.append(0.0 if worst is None else worst.wait_s)
            if worst is not None:
                slowest[worst.who] += 1
        who, times = next(iter(slowest.most_common(1)), ("", 0))
        mean_s, median_s, p95_s = map(float, (np.mean(seconds), *np.percentile(seconds, [50, 95])))
        found.append(
            PhaseSummary(
                name=name,
                mean_s=mean_s,
                median_s=median_s,
                p95_s=p95_s,
                share=mean_s / clean.mean_s if clean.mean_s else 0.0,
                steps=ended.total(),
                wait_s=float(np.mean(waits)),
                worst=who if times * 3 > slowest.total() * 2 else "",
                last=ended.most_common(1)[0][0],
            )
        )
    return tuple(found)


def cost_note(steps: list[Step], clean: Clean) -> str:
    """Compare recorded steps with clean ones, if there are enough of both."""
    own = [one.seconds for one in steps if one.state == "recorded"]
    rest = [one.seconds for one in steps if one.state == "clean"]
    if len(own) < 2 or len(rest) < 5 or clean.median_s is None:
        return "Too few recorded or clean steps to say what recording costs a step."
    more = float(np.median(own)) - clean.median_s
    errors = (np.std(one) / len(one) ** 0.5 for one in (own, rest))
    spread = 1.25 * 1.96 * float(np.hypot(*errors))
    return (
        f"A recorded step takes {more:.2f} s ({more - spread:.2f} to {more + spread:.2f}) "
        f"more than a clean one of {clean.median_s:.2f} s."
    )
