"""Puts a comparison together, with the sentences that explain it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._diff import rest
from rlprof_report._diff.times import FEWEST, phase_changes, step_change
from rlprof_report.values.diff import Change, Diff, Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._diff.part import Part

_FAR = 1.5
"""A larger ratio of lengths gets a note."""


def diff(a: Part, b: Part) -> Diff:
    """Compare *b* with *a*."""
    sides = a.side(), b.side()
    by_tokens = all(side.tokens is not None for side in sides)
    step = step_change(a, b, by_tokens=by_tokens)
    phases = phase_changes(a, b, by_tokens=by_tokens)
    return Diff(
        a=sides[0],
        b=sides[1],
        step=step,
        phases=phases,
        sentences=tuple(_sentences(step, phases)),
        came=rest.findings(b, a),
        went=rest.findings(a, b),
        shares=rest.shares(a, b),
        kernels=rest.kernels(a, b),
        settings=rest.settings(a.run, b.run),
        versions=rest.versions(a.run, b.run),
        notes=tuple(_notes(*sides)),
    )


def _sentences(step: Change, phases: Sequence[Change]) -> Iterator[str]:
    """Answer: the step, the phases that differ, the others, and the smallest visible change."""
    if step.change is None:
        counts = f"A has {step.a_steps} clean steps and B {step.b_steps}"
        yield f"Too few steps: {counts}; a comparison needs {FEWEST} of each."
        return
    yield f"The step: {_said(step)}."
    moved = [phase for phase in phases if phase.state in ("slower", "faster")]
    for phase in sorted(moved, key=lambda p: abs((p.b_s or 0) - (p.a_s or 0)), reverse=True):
        yield f"{phase.name}: {_said(phase)}."
    like = [phase.name for phase in phases if phase.state == "no difference seen"]
    if like:
        yield f"No difference seen in {', '.join(like)}."
    for state in ("only A", "only B"):
        names = [phase.name for phase in phases if phase.state == state]
        if names:
            yield f"Only {state[-1]} has {', '.join(names)}."
    if step.visible is not None:
        steps = f"{step.a_steps} and {step.b_steps} steps"
        yield f"With {steps}, a change below {percent(step.visible)} of a step cannot be seen."


def _said(change: Change) -> str:
    if change.state not in ("slower", "faster"):
        return f"no difference seen ({interval(change)})"
    at = "at equal tokens" if change.basis == "equal tokens" else "in seconds; lengths may differ"
    return f"{signed(change)} ({interval(change)}) {at}"


def _notes(a: Side, b: Side) -> Iterator[str]:
    if a.tokens is None or b.tokens is None:
        yield "Not every step noted its tokens, so seconds are compared; lengths may differ."
    elif not 1 / _FAR <= b.tokens / a.tokens <= _FAR:
        yield (
            f"The lengths differ a lot: {a.tokens:,.0f} tokens a step in A, {b.tokens:,.0f} in B; "
            "that widens the intervals."
        )
    if a.run != b.run:
        yield "A and B are two runs: another node or hour may explain part of the difference."


def signed(change: Change) -> str:
    """Show a change: `+4.8 %`."""
    if change.change is None:
        return "-"
    return f"{100 * change.change:+.{_digits(change)}f} %"


def interval(change: Change) -> str:
    """Show the interval of a change: `2.1 to 7.6 %`."""
    if change.low is None or change.high is None:
        return "-"
    digits = _digits(change)
    return f"{100 * change.low:.{digits}f} to {100 * change.high:.{digits}f} %"


def _digits(change: Change) -> int:
    """Show a second digit where thousands of steps make the interval narrow."""
    return 2 if (change.high or 0) - (change.low or 0) < 0.002 else 1


def percent(value: float) -> str:
    """Show a share with the digits that mean something: `6 %`, `0.8 %`, `0.05 %`."""
    digits = 0 if value >= 0.02 else 1 if value >= 0.002 else 2
    return f"{100 * value:.{digits}f} %"
