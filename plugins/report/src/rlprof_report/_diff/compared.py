"""Puts a comparison together, with the sentences that explain it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._diff import rest
from rlprof_report._diff.times import FEWEST, phase_changes, step_change
from rlprof_report._diff.words import interval, percent, seconds, signed
from rlprof_report.values.diff import Diff

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._diff.part import Part
    from rlprof_report.values.diff import Change

_FAR = 1.5
"""A larger ratio of lengths gets a note."""
_LARGEST = 3
"""Phases that are named where none has an interval."""


def diff(a: Part, b: Part) -> Diff:
    """Compare *b* with *a*."""
    sides = a.side(), b.side()
    by_tokens = all(side.tokens is not None for side in sides)
    of_slowest = a.has_frontier() and b.has_frontier()
    step = step_change(a, b, by_tokens=by_tokens)
    phases = phase_changes(a, b, by_tokens=by_tokens, of_slowest=of_slowest)
    came, went, resized = rest.findings(a, b)
    return Diff(
        a=sides[0],
        b=sides[1],
        step=step,
        phases=phases,
        sentences=tuple(_sentences(step, phases)),
        came=came,
        went=went,
        resized=resized,
        shares=rest.shares(a, b),
        kernels=tuple(rest.kernels(a, b)),
        settings=rest.settings(a.run, b.run),
        versions=rest.versions(a.run, b.run),
        notes=tuple(_notes(a, b, of_slowest=of_slowest)),
    )


def _sentences(step: Change, phases: Sequence[Change]) -> Iterator[str]:
    """Answer: the step, the phases that differ, the others, and the smallest visible change."""
    largest = sorted(phases, key=lambda one: -abs(one.change or 0) * (one.a_s or 0))
    if step.visible is None:
        yield (
            f"Too few steps for an interval: A has {step.a_steps} and B {step.b_steps}, "
            f"each needs {FEWEST}."
        )
        if step.change is not None:
            yield "Chance alone may explain these differences:"
            yield f"The step: {_said(step)}."
            yield from (f"{one.name}: {_said(one)}." for one in largest[:_LARGEST] if one.change)
        return
    yield f"The step: {_said(step)}."
    for phase in largest:
        if phase.state in ("slower", "faster"):
            side = "B" if phase.state == "slower" else "A"
            whose = f" {side} waits for {phase.rank}." if phase.rank else ""
            yield f"{phase.name}: {_said(phase)}.{whose}"
    like = [phase.name for phase in phases if phase.state == "no difference seen"]
    if like:
        yield f"No difference seen in {', '.join(like)}."
    for state in ("only A", "only B"):
        names = [
            f"{one.name} ({seconds(one.a_s or one.b_s)})" for one in phases if one.state == state
        ]
        if names:
            yield f"Only {state[-1]} has {', '.join(names)}."
    steps = f"{step.a_steps} and {step.b_steps} steps"
    yield f"With {steps}, a change below {percent(step.visible)} of a step cannot be seen."


def _said(change: Change) -> str:
    if change.state == "no difference seen":
        return f"no difference seen ({interval(change)})"
    sure = "" if change.low is None else f" ({interval(change)})"
    at = "at equal tokens" if change.basis == "equal tokens" else "in seconds; lengths may differ"
    return f"{signed(change)}{sure} {at}"


def _notes(a: Part, b: Part, *, of_slowest: bool) -> Iterator[str]:
    left, right = a.side(), b.side()
    if left.tokens is None or right.tokens is None:
        yield "Not every step noted its tokens, so seconds are compared; lengths may differ."
    elif not 1 / _FAR <= right.tokens / left.tokens <= _FAR:
        yield (
            f"The lengths differ a lot: {left.tokens:,.0f} tokens a step in A, "
            f"{right.tokens:,.0f} in B; that widens the intervals."
        )
    if of_slowest:
        yield "A phase counts what it adds to the slowest rank. Waits for that rank do not count."
    elif a.peers or b.peers:
        yield "The phases are those of one rank. Where ranks meet, it may wait for a slower one."
    if left.run != right.run:
        yield "A and B are two runs: another node or hour may explain part of the difference."
