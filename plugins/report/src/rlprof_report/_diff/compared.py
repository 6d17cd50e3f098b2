"""A comparison, its sentences, and all of it as text for a terminal or a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_cli.table import table
from rlprof_report._diff import rest
from rlprof_report._diff.times import FEWEST, phase_changes, step_change
from rlprof_report._plain import plain, secs
from rlprof_report.values.diff import Diff

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlprof_report._diff.part import Part
    from rlprof_report.values.diff import Change, Pair, Resized, Side

_FAR = 1.5
"""A larger ratio of lengths gets a note."""
_LARGEST = 3
"""Phases that are named where none has an interval."""
_WIDEST = 44
"""Characters of a value in a table."""
_MOST = 12
"""Lines of a list; the JSON has all."""
_TIMES = 9
"""From this change on, ratios are shown instead of percents."""


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
    """Answer in order: the step, phases that differ, other phases, the smallest visible change."""
    largest = sorted(phases, key=lambda one: -abs(one.change or 0) * (one.a_s or 0))
    if step.visible is None:
        yield (
            f"Too few steps for an interval: A has {step.a_steps} and B {step.b_steps}, "
            f"each needs {FEWEST}."
        )
        if step.change is not None:
            yield "Without an interval, nothing says which of these differences are chance:"
            yield f"The step: {_change(step)}."
            changed = [one for one in largest if signed(one) not in ("-", "+0.0 %")]
            yield from (f"{one.name}: {_change(one)}." for one in changed[:_LARGEST])
        return
    yield f"The step: {_change(step)}."
    for phase in largest:
        if phase.state in ("slower", "faster"):
            side = "B" if phase.state == "slower" else "A"
            whose = f" {side} waits for {phase.rank}." if phase.rank else ""
            yield f"{phase.name}: {_change(phase)}.{whose}"
    like = [phase.name for phase in phases if phase.state == "no difference seen"]
    if like:
        yield f"No difference seen in {', '.join(like)}."
    for state in ("only A", "only B"):
        names = [
            f"{one.name} ({seconds(one.a_s or one.b_s)})" for one in phases if one.state == state
        ]
        if names:
            yield f"Only {state[-1]} has {', '.join(names)}."
    for side, other in ("AB", "BA"):
        for one in phases:
            if one.state == f"about 0 in {side}":
                much = seconds(one.a_s or one.b_s)
                yield f"{one.name} adds {much} to a step of {other}, about 0 s in {side}."
    steps = f"{step.a_steps} and {step.b_steps} steps"
    yield f"With {steps}, a change below {percent(step.visible)} of a step may be missed."


def _change(change: Change) -> str:
    if change.state == "no difference seen":
        return f"no difference seen ({interval(change)})"
    sure = "" if change.low is None else f" ({interval(change)})"
    at = "at equal tokens" if change.basis == "equal tokens" else "in seconds"
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
    if (left.run, left.steps) == (right.run, right.steps):
        yield "A and B are the same steps."
    if left.run != right.run:
        yield "A and B are two runs: another node or hour may explain part of the difference."


def text(diff: Diff) -> str:
    """Return *diff* as text."""
    blocks = [
        "\n".join([_side("A", diff.a), _side("B", diff.b)]),
        "\n".join(plain(sentence) for sentence in diff.sentences),
        _changes((diff.step, *diff.phases)),
        _listed("new findings in B", (finding.title for finding in diff.came)),
        _listed("findings only in A", (finding.title for finding in diff.went)),
        _listed("findings that changed", map(_resized, diff.resized)),
        _pairs("rollout", diff.shares),
        _listed("kernels", _kernels(diff)),
        _pairs("config", diff.settings),
        _pairs("processes", diff.versions),
        _listed("notes", diff.notes),
    ]
    return "\n\n".join(block for block in blocks if block)


def _side(letter: str, side: Side) -> str:
    chosen = f":{side.chosen}" if side.chosen else ""
    left = ", ".join(f"{len(steps)} {why}" for why, steps in side.left_out.items())
    count = len(side.steps)
    steps = f"{count} step{'s' * (count != 1)}" + (f" (left out: {left})" if left else "")
    tokens = "" if side.tokens is None else f", {side.tokens:,.0f} tokens a step"
    return f"{letter}  {plain(side.run)}{chosen}: {steps}{tokens}"


def _changes(changes: Sequence[Change]) -> str:
    head = ("", "A", "B", "CHANGE", "95 % INTERVAL", "SEEN FROM", "")
    rows = [
        (
            change.name, seconds(change.a_s), seconds(change.b_s), signed(change),
            interval(change), "-" if change.visible is None else percent(change.visible),
            change.state,
        )
        for change in changes
    ]  # fmt: skip
    return table(head, rows, right=head[1:6])


def _resized(one: Resized) -> str:
    return f"was {one.a_s:.2f} s, is {one.b_s:.2f} s a step: {one.finding.title}"


def _kernels(diff: Diff) -> Iterator[str]:
    for one in diff.kernels:
        a, b = ("-" if us is None else f"{us:.1f} us" for us in (one.a_median_us, one.b_median_us))
        times = f"{a} -> {b}, median of {one.a_count} and {one.b_count} calls"
        yield f"{one.state}: {plain(one.name, 60)} ({one.role}): {times}"


def _pairs(title: str, pairs: Sequence[Pair]) -> str:
    rows = [
        [plain(cell or "-", _WIDEST) for cell in (pair.name, pair.a, pair.b)]
        for pair in pairs[:_MOST]
    ]
    more = [f"... and {len(pairs) - _MOST} more"] if len(pairs) > _MOST else []
    return "\n".join([table((title, "A", "B"), rows), *more]) if pairs else ""


def _listed(title: str, items: Iterable[str]) -> str:
    lines = [f"  {plain(item)}" for item in items]
    if len(lines) > _MOST:
        lines[_MOST:] = [f"  ... and {len(lines) - _MOST} more"]
    return "\n".join([f"{title}:", *lines]) if lines else ""


def seconds(value: float | None) -> str:
    """Show a time that may be unknown."""
    return "-" if value is None else secs(value)


def signed(change: Change) -> str:
    """Show a change: `+4.8 %`; from ten times on, `x 12`."""
    if change.change is None:
        return "-"
    if change.change >= _TIMES:
        return f"x {1 + change.change:,.0f}"
    return f"{round(100 * change.change, 1) + 0.0:+.1f} %"  # no -0.0


def interval(change: Change) -> str:
    """Show the interval of a change: `2.1 to 7.6 %`, `x 11 to 14`."""
    if change.low is None or change.high is None:
        return "-"
    if (change.change or 0) >= _TIMES:
        return f"x {1 + change.low:,.0f} to {1 + change.high:,.0f}"
    return f"{100 * change.low:.1f} to {100 * change.high:.1f} %"


def percent(value: float) -> str:
    """Show a share: `6 %`, `0.8 %`."""
    return f"{100 * value:.{0 if value >= 0.02 else 1}f} %"
