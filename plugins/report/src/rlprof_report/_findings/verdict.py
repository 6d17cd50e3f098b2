"""The answer in a sentence or three."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._figures.trajectories import ROLLOUT
from rlprof_report._findings.lost import named
from rlprof_report._findings.met import met_in
from rlprof_report._findings.words import numbered
from rlprof_report._plain import secs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report._findings.facts import Silent
    from rlprof_report.values import Analysis, Finding
    from rlprof_report.values.step import Step


_MOST = 0.5
"""The least share of a critical path that is worth a word."""
_APART = 0.2
"""The least share by which a mean step differs from a median one to be worth a word."""
_KINDS = {
    "queue": "queueing: add slots or replicas",
    "tool_call": "tools",
    "reward": "rewards",
    "agent": "the agent itself, between requests and tools",
}
"""Parts of a trajectory that need no recording to be understood."""
_NOTHING = " No cause stands out."
_ODD = "No cause that rlprof knows stands out."
_LONGER = {"touched": "touched by recording"}


def of_run(
    analysis: Analysis,
    findings: Sequence[Finding],
    *,
    odd: str = "",
    is_guest: bool = False,
    queues: str = "",
    command: str = "",
) -> str:
    """Answer for the run as a whole, which `rlprof attach` made if *is_guest*.

    *odd* says what is odd about the lengths of its steps, if anything is, and *queues* how many
    requests wait in engines. *command* records the longest phase.
    """
    clean, median_s = analysis.clean, analysis.clean.median_s
    if median_s is None or len(clean.steps) < 2:
        more = " Watch some: rlprof attach --tool none" if is_guest else ""
        return _too_few(analysis) + more
    mean_s = clean.mean_s or median_s
    mean = f", mean {secs(mean_s)}" if abs(mean_s - median_s) >= _APART * median_s else ""
    head = f"A step takes {secs(median_s)} (median of {len(clean.steps)}{mean})."
    few = " With so few steps, the order of causes may change." if len(clean.steps) < 5 else ""
    if not findings:
        return f"{head} {odd or _nothing(analysis, queues, command)}"
    first, which = findings[0], "a step"
    if len(first.steps) < len(clean.steps) / 2:
        if odd:  # a trend concerns more steps
            return f"{head} {odd}"
        which = "such a step" if len(first.steps) > 1 else numbered(first.steps)
    return f"{head} {first.title} {_without(first, which)}{few}"


def with_silent(answer: str, silent: Silent) -> str:
    """Add a warning about ranks without spans, unless *answer* names them."""
    names, count = named(silent), sum(map(len, silent.values()))
    if not count or f"{names} write" in answer:
        return answer
    one = ("writes", "it is") if count == 1 else ("write", "one of them is")
    return f"{answer} {names} {one[0]} no spans: if {one[1]} slow, nothing here shows it."


def with_lost(answer: str, lost: Sequence[str]) -> str:
    """Begin with what the answer lacks, if files are *lost*."""
    if not lost:
        return answer
    more = f" The notes name {len(lost) - 1} more." if len(lost) > 1 else ""
    answer = answer.replace(_ODD, "No cause shows in the rest.").replace(_NOTHING, "")
    return f"Cannot tell for sure: {lost[0]}{more} {answer.rstrip()}"


def _nothing(analysis: Analysis, queues: str, command: str) -> str:
    """Name the phase to look into if no cause is known, and whether it may hide a late rank."""
    longest = max(analysis.phases, key=lambda one: one.mean_s, default=None)
    if longest is None:
        return f"{_ODD} It has no phases: wrap its parts in prof.phase(...), and ask again."
    share = f"{secs(longest.mean_s)}, {longest.share:.0%}"
    role = met_in(analysis, longest, perhaps=True)
    if role:
        return (
            f"The longest phase is {longest.name} ({share}); ranks of {role} take about as long in "
            "it, so one may hold up the others."
        )
    if queues and ROLLOUT.search(longest.name):
        return f"The longest phase is {longest.name} ({share}). {queues}"
    what = _look_into(analysis, longest.name, command)
    if ROLLOUT.search(longest.name) and not any(one.rollout for one in analysis.steps):
        what = (
            "it notes no trajectories, so tails and replicas cannot be judged: mark them with "
            "rlprof.trajectory"
        )
    return f"{_ODD} The longest phase is {longest.name} ({share}); {what}."


def _look_into(analysis: Analysis, phase: str, command: str) -> str:
    """Say what most of *phase* is, or how to see inside: on the timeline, or by recording it."""
    known = _most_of(analysis, phase)
    if known:
        return known
    ids = (str(one["window"]) for one in analysis.captures if one["state"] == "whole")
    if any(one.partition("/")[2] in ("", phase) for one in ids):
        return "look inside its windows with rlprof view"
    return f"record it to see inside: {command} while a run goes on"


def _most_of(analysis: Analysis, phase: str) -> str:
    """Say which spans of trajectories make up most of the critical path in *phase*."""
    took: dict[str, float] = {}
    for step in analysis.steps:
        for part in step.path if step.state == "clean" else ():
            name, _, kind = part.what.partition(": ")
            if name == phase:
                kind = kind.partition(" ")[0]
                took[kind] = took.get(kind, 0.0) + part.seconds
    most = max(took, key=lambda one: took[one], default="")
    share = took.get(most, 0.0) / (sum(took.values()) or 1.0)
    is_known = most in _KINDS and share >= _MOST
    return f"{share:.0%} of its critical path is {_KINDS[most]}" if is_known else ""


def _without(finding: Finding, which: str) -> str:
    """Subtract the bound from the step that the finding is a share of, as both are printed."""
    best = round(finding.seconds / finding.share, 2) - round(finding.bound_s, 2)
    return f"Without that, {which} takes {secs(max(0.0, best))} at best."


def _too_few(analysis: Analysis) -> str:
    states = [
        f"{numbered(steps)} {'are' if len(steps) > 1 else 'is'} {_LONGER.get(state, state)}"
        for state, steps in analysis.clean.left_out.items()
    ]
    count = len(analysis.clean.steps)
    left = f"{count} clean step{'s' if count != 1 else ''}"
    why = f" ({'; '.join(states)})" if states else ""
    return f"Too few steps to compare: {left}{why}. Findings need two."


def of_step(
    step: Step,
    usual_s: float | None,
    peers: Sequence[int],
    findings: Sequence[Finding],
    *,
    shared: int,
) -> str:
    """Answer for one step; the first *shared* findings are those of the run."""
    name = f"Step {step.step}"
    if step.state != "clean":
        name += f" ({_LONGER.get(step.state, step.state)})"
    if usual_s is None:
        return (
            f"{name} took {secs(step.seconds)}. There are too few clean steps to compare it with."
        )
    more = step.seconds - usual_s
    usual = f"the median of {numbered(peers)} ({secs(usual_s)})"
    if abs(more) < 0.1 * usual_s:
        length, nothing = f"about {usual}", _NOTHING
    elif more < 0:
        length, nothing = f"{secs(-more)} less than {usual}", ""
    else:
        length, nothing = f"{secs(more)} more than {usual}", " No single cause explains it."
    head = f"{name} took {secs(step.seconds)}, {length}."
    if not findings:
        return f"{head}{nothing}"
    own = f" Unlike its neighbours: {findings[shared].title}" if 0 < shared < len(findings) else ""
    return f"{head} {findings[0].title} {_without(findings[0], 'the step')}{own}"
