"""How much of one step each cause took; `weigh.py` asks how often."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report._figures.helps import syncs_of
from rlprof_report._figures.path import BETWEEN
from rlprof_report._figures.trajectories import REWARD, ROLLOUT, SYNC, UPDATE, WAITING
from rlprof_report._findings.facts import Measure, is_data, uneven_tokens
from rlprof_report._findings.lost import named
from rlprof_report._findings.pauses import pauses_of
from rlprof_report._findings.rollout import rollout_of
from rlprof_report._plain import listed, secs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_report._figures.ranks import Group
    from rlprof_report._findings.facts import Context, Facts
    from rlprof_report.values.step import Ranks

_IN_IT = 0.05
"""Ranks that spend a smaller share of the slowest one's time in a phase take no part in it."""
_NEXT_TO_NONE = 0.01
"""A rank that is slower by a smaller share of a step is not called slow."""
_NAME_IT = "Name what it does there: wrap that code in prof.phase(...), and ask again."


def measures_of(facts: Facts, context: Context) -> list[Measure]:
    """Measure every cause in a step; a cause that explains half of another replaces it."""
    pauses = list(pauses_of(facts, context))
    found = list(pauses)
    for one in (*_alone(facts, context), *_stragglers(facts, context), *_gap(facts, context)):
        if not _explained(one, found):
            found.append(one)
    hidden = [one for one in _hidden(facts, context) if not _explained(one, pauses)]
    collected = [one for one in pauses if one.cause == "gc"]
    slow = {one.phase: one.seconds for one in found if one.cause == "straggler"}
    rewards = [one for one in _rewards(facts, context, slow) if not _explained(one, collected)]
    waits, syncs = list(_waits(facts)), list(_sync(facts, context))
    if sum(one.seconds for one in waits) >= sum(one.seconds for one in syncs):
        syncs = []  # a faster sync would only be followed by a longer wait
    return [*found, *hidden, *rewards, *rollout_of(facts, context), *waits, *syncs]


def _explained(measure: Measure, by: list[Measure]) -> bool:
    return any(one.who == measure.who and one.seconds >= measure.seconds / 2 for one in by)


def _alone(facts: Facts, context: Context) -> Iterator[Measure]:
    """Find phases of one rank, for which the others wait; rollouts and syncs have own causes."""
    for one in facts.alone:
        phase, process = one.group.phase, int(one.group.processes[0])
        is_rollout = facts.step.rollout is not None and ROLLOUT.search(phase)
        if one.wait_s <= 0 or is_rollout or is_data(phase) or SYNC.search(phase):
            continue
        who, target = context.name(process), context.processes[process].target
        yield Measure(
            "alone",
            one.wait_s,
            who,
            f"{who} is alone in `{phase}` for {secs(one.wait_s)}, and the others go on after it.",
            (
                f"It spends {secs(float(one.group.seconds[0]))} there in all.",
                "Do it less often, in the background, or in parts on every rank.",
            ),
            (f"{who} in {phase}",),
            target.role,
            target.rank,
            phase,
        )


def _stragglers(facts: Facts, context: Context) -> Iterator[Measure]:
    """Add up the phases in which the same ranks are the slowest, and ranks do not meet."""
    found: dict[tuple[str, tuple[int, ...]], list[tuple[float, Group, Ranks]]] = {}
    pairs = zip(facts.groups, facts.step.ranks, strict=True)
    for group, ranks in sorted(pairs, key=lambda pair: pair[0].phase == BETWEEN):
        is_rollout = facts.step.rollout is not None and ROLLOUT.search(group.phase)
        is_replicas = is_rollout and context.leads_fleet and _has_replicas(facts)
        later_s = _later_s(group)
        if ranks.meets or is_replicas or is_data(group.phase) or later_s < ranks.wait_s / 2:
            continue
        if is_rollout and ranks.max_s - ranks.wait_s < _IN_IT * ranks.max_s:
            continue  # one rank drives the rollout of all
        if int(group.first.max() - group.first.min()) > facts.step.seconds * 1e9:
            continue  # they are whole steps apart, so none waits for another
        wait = min(ranks.wait_s, later_s)  # it may have begun before the others
        if group.phase == BETWEEN:  # there it may itself wait for those that are late in a phase
            late = [own for other, own in found.items() if not {*other[1]} & {*group.slow}]
            wait -= sum(one[0] for own in late for one in own)
        if wait > max(0.1 * (ranks.max_s - ranks.wait_s), _NEXT_TO_NONE * facts.step.seconds):
            found.setdefault((group.who, group.slow), []).append((wait, group, ranks))
    for (who, _), phases in found.items():
        wait = sum(one[0] for one in phases)
        _, group, own = max(phases, key=lambda one: one[0])
        process = int(group.processes[group.wait.slowest])
        rank, target = context.name(process), context.processes[process].target
        took, usual, phase = own.max_s, own.max_s - own.wait_s, group.phase
        place = phase if phase == BETWEEN else f"in {phase}"
        also = [one[1].phase for one in phases if one[1] is not group]
        it = "It" if rank == who else rank
        yield Measure(
            "straggler",
            wait,
            who,
            f"All wait {secs(wait)} for {who}, the slowest {place}.",
            (
                f"{it} spends {secs(took)} {place}, the median of the others {secs(usual)}.",
                *([f"That is so in {listed(also)}, too."] if also else []),
                *([_NAME_IT] if phase == BETWEEN else uneven_tokens(group)),
            ),
            (rank,),
            target.role,
            target.rank,
            "" if phase == BETWEEN else phase,
            is_by_chance=facts.step.rollout is not None and ROLLOUT.search(phase) is not None,
        )


def _has_replicas(facts: Facts) -> bool:
    """Whether requests note their replicas; else the rollout is compared as other phases are."""
    return facts.step.rollout is not None and len(facts.step.rollout.replicas) > 1


def _later_s(group: Group) -> float:
    """Return how much later than the others its slowest rank leaves a phase."""
    if group.phase == BETWEEN:
        return float("inf")
    slowest = group.wait.slowest
    later = int(group.last[slowest]) - float(np.median(np.delete(group.last, slowest)))
    return later / 1e9


def _gap(facts: Facts, context: Context) -> Iterator[Measure]:
    """Measure the time in no phase; of ranks, the one that has least: others may wait for one."""
    seconds, step, who = facts.step.unaccounted_s, facts.step, context.name(context.leader)
    target = context.processes[context.leader].target
    whose, role = who, target.role
    rank: int | None = target.rank
    for one in facts.groups:
        if (one.role, one.phase) == (role, BETWEEN):
            seconds, whose, rank = min(seconds, float(one.seconds.min())), f"any {role}", None
    if not step.phases or seconds <= 0:
        return
    gaps = [part for part in step.path if part.what == BETWEEN]
    longest = max(gaps, key=lambda part: part.seconds, default=None)
    evidence: tuple[str, ...] = ()
    if longest is not None:
        middle = (longest.start_s + longest.end_s) / 2  # the path may be that of another rank
        before = [p.name for p in step.phases if p.end_s <= middle]
        after = [p.name for p in step.phases if p.start_s >= middle]
        place = f"after {before[-1]}" if before else f"before {after[0]}" if after else ""
        evidence = (f"The longest gap, {secs(longest.seconds)}, is {place or 'between phases'}.",)
    where = f"{whose} between phases"
    if context.is_guest:
        where = "the driver between its calls"
        evidence += (
            "The driver works by itself then, or waits for HTTP or an actor that is not attached.",
        )
    (process, name), ns = next(iter(facts.between.most_common(1)), ((context.leader, ""), 0))
    if ns and ns / 1e9 >= seconds / 2:
        what = f"the span {name}" if process == context.leader else name
        evidence += (f"Most of that is in {what} of {context.name(process)}.",)
    elif rank is None:
        evidence += (f"There, the others may be waiting for one rank that is working. {_NAME_IT}",)
    yield Measure(
        "gap",
        seconds,
        who,
        f"{secs(seconds)} are in no phase of {whose}.",
        evidence,
        (where,),
        "" if context.leads_fleet else role,
        None if context.leads_fleet else rank,
    )


def _hidden(facts: Facts, context: Context) -> Iterator[Measure]:
    """Find phases of the driver that go on after all members with spans are done."""
    for one in facts.outlasted:
        done, role = context.name(one.process), context.processes[one.process].target.role
        silent = {role: context.silent[role]} if role in context.silent else {}
        are = "writes" if len(context.silent.get(role, ())) == 1 else "write"
        rest = f"; {named(silent)} {are} no spans." if silent else ", the last member with spans."
        yield Measure(
            "hidden" if silent else "driver",
            one.seconds,
            context.name(context.leader),
            f"{secs(one.seconds)} of {one.phase} pass after {done} is done{rest}",
            (
                "The driver waits for a member without spans, or works by itself."
                if silent
                else "The driver works by itself then, waits, or moves data.",
            ),
            (f"{named(silent) or context.name(context.leader)} in {one.phase}",),
            role if silent else "",
            None,
            one.phase,
        )


def _rewards(facts: Facts, context: Context, slow: dict[str, float]) -> Iterator[Measure]:
    """Measure rewards that have a phase of their own, without what *slow* ranks add to it."""
    usual = {one.phase: one.max_s - one.wait_s for one in facts.step.ranks}
    for phase in facts.step.phases:
        if REWARD.search(phase.name) and not (
            ROLLOUT.search(phase.name) or UPDATE.search(phase.name)
        ):
            more_s = max(0.0, phase.seconds - usual.get(phase.name, phase.seconds))
            seconds = phase.seconds - min(more_s, slow.get(phase.name, 0.0))
            yield Measure(
                "reward",
                seconds,
                context.name(context.leader),
                f"Computing rewards takes {secs(seconds)} in {phase.name}, while training waits.",
                ("Score each trajectory as soon as it ends, or give rewards more workers.",),
                (f"phase {phase.name}",),
                phase=phase.name,
            )


def _waits(facts: Facts) -> Iterator[Measure]:
    """Measure how long training waits for trajectories that are generated at the same time."""
    waits = [phase for phase in facts.step.phases if WAITING.search(phase.name)]
    if waits and facts.step.flow is not None:
        longest = max(waits, key=lambda phase: phase.seconds)
        seconds = sum(phase.seconds for phase in waits)
        why = f": {facts.step.flow.held_by}" if facts.step.flow.held_by else ""
        yield Measure(
            "wait",
            seconds,
            "",
            f"Training waits {secs(seconds)} for trajectories in {longest.name}{why}.",
            () if why else (facts.step.flow.advice,),
            (f"phase {longest.name}",),
            phase=longest.name,
            bound_s=seconds,
        )


def _sync(facts: Facts, context: Context) -> Iterator[Measure]:
    syncs = syncs_of(facts.step, leads_fleet=context.leads_fleet)
    if not syncs:
        return
    seconds, name = sum(syncs.values()), max(syncs, key=lambda one: syncs[one])
    title = f"Syncing weights takes {secs(seconds)} in {name}."
    todo = "Send weights while other work runs, or in larger buckets."
    served_s = facts.step.flow.sync_served_s if facts.step.flow is not None else 0.0
    if served_s >= seconds / 2:
        title = f"{name} takes {secs(seconds)}, with requests in flight for {secs(served_s)} of it."
        todo = "It may wait for these requests rather than for the weights."
    yield Measure(
        "sync",
        seconds,
        "",
        title,
        (todo,),
        (f"phase {name}",),
        phase=name,
    )
