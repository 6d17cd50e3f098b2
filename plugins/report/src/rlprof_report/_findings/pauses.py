"""What stops a process from outside of its phases' work: garbage collection, loading data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report._findings.facts import Measure, bound_of, is_data
from rlprof_report._plain import secs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof_report._findings.facts import Context, Facts

_COLD = 1.25
"""A collection also empties caches, and what runs after it takes longer."""


def pauses_of(facts: Facts, context: Context) -> Iterator[Measure]:
    """Measure in one step what the collector takes, and what loading data takes."""
    yield from _gc(facts, context)
    yield from _data(facts, context)


def _gc(facts: Facts, context: Context) -> Iterator[Measure]:
    """Name each process that collects, or all of a role at once if most of them do alike."""
    for role, own in _by_role(facts.others.get("gc", {}), context).items():
        longest = max(own, key=lambda process: own[process])
        alike = [process for process, took in own.items() if took >= own[longest] / 2]
        peers = sum(one.target.role == role for one in context.processes)
        are_alike = len(alike) > 1 and 2 * len(alike) >= peers
        for process in [longest] if are_alike else own:
            seconds, phase = own[process], facts.paused.phases.get(process, "")
            who, stopped_s = context.name(process), seconds
            whom, how_long = who, secs(seconds)
            if are_alike:
                whom, how_long = f"{len(alike)} processes of {role}", f"up to {how_long} each"
                who = context.name(context.leader) if context.leader in alike else ""
                stopped_s = facts.paused.any_s[role]
            else:
                stopped_s = seconds = max(0.0, seconds - _ahead_s(facts, process, phase))
            inside = f", most of it in {phase}" if phase else ""
            yield Measure(
                "gc",
                seconds,
                who,
                f"Python's garbage collector stops {whom} for {how_long}{inside}.",
                ("Call gc.freeze() after start-up, or gc.collect() while nothing waits.",),
                (context.name(process),),
                bound_s=bound_of(stopped_s, facts.step.seconds, _COLD),
            )


def _ahead_s(facts: Facts, process: int, phase: str) -> float:
    """Return how much earlier than another rank *process* leaves *phase*: that delays nobody."""
    for group in facts.groups:
        own = group.last[group.processes == process]
        if group.phase == phase and len(own):
            return float(group.last.max() - own[0]) / 1e9
    return 0.0


def _by_role(seconds: Mapping[int, float], context: Context) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for process, took in seconds.items():
        found.setdefault(context.processes[process].target.role, {})[process] = took
    return found


def _data(facts: Facts, context: Context) -> Iterator[Measure]:
    """Find data loading in phases of ranks, in spans of processes, in phases of the leader."""
    groups = [(group, len(group.ranks)) for group in facts.groups]
    groups += [(one.group, one.peers + 1) for one in facts.alone]
    for group, ranks in groups:
        if is_data(group.phase):
            own = dict(zip(group.processes.tolist(), group.seconds.tolist(), strict=True))
            yield from _data_of(group.phase, own, ranks, context, phase=group.phase)
    grouped = {group.phase for group, _ in groups}
    for name, seconds in facts.others.items():
        if is_data(name) and name not in grouped:
            for role, own in _by_role(seconds, context).items():
                ranks = sum(one.target.role == role for one in context.processes)
                yield from _data_of(name, own, ranks, context)
    for phase in facts.step.phases:
        if is_data(phase.name) and phase.name not in grouped:
            own = {context.leader: phase.seconds}
            yield from _data_of(phase.name, own, 1, context, phase=phase.name)


def _data_of(
    name: str, seconds: dict[int, float], ranks: int, context: Context, *, phase: str = ""
) -> Iterator[Measure]:
    """Name the process that loads longest, unless its peers do as well; in a *phase*?"""
    slowest = max(seconds, key=lambda process: seconds[process])
    values = [took for process, took in seconds.items() if process != slowest]
    values += [0.0] * (ranks - 1 - len(values))
    most, usual = seconds[slowest], float(np.median(values)) if values else 0.0
    target = context.processes[slowest].target
    where = (f"{context.name(slowest)} in {name}",)
    if values and most - usual >= usual:
        who = context.name(slowest)
        yield Measure(
            "data",
            most - usual,
            who,
            f"{who} loads data for {secs(most)} in `{name}`; its peers for {secs(usual)}.",
            (f"The median of the other {target.role} processes is {secs(usual)}.",),
            where,
            target.role,
            target.rank,
            phase,
        )
    else:
        who = context.name(context.leader) if context.leader in seconds else ""
        yield Measure(
            "data",
            most,
            who,
            f"Loading data takes {secs(most)} in `{name}`, while training waits.",
            ("Prefetching workers can load it during the previous step.",),
            where,
            target.role,
            None,
            phase,
        )
