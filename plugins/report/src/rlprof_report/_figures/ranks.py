"""Figures 2 and 3: the ranks of a role in each phase, and the slowest of them."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._figures.intervals import clipped, covered
from rlprof_report._figures.meetings import begins
from rlprof_report._figures.path import BETWEEN
from rlprof_report._figures.slow import slow_of, together
from rlprof_report._figures.waits import Wait, wait_of
from rlprof_report._plain import whose
from rlprof_report._spans.rows import NO_STEP
from rlprof_report.values import RankTable
from rlprof_report.values.step import Ranks, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._figures.meetings import Meetings
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans.recorded import Recorded

_MOST_CELLS = 200_000
_ALONE = Wait(0, 0.0, meets=False)


@attrs.frozen(eq=False)
class Group:
    """The ranks of one role in one phase of one step; each has one place in all arrays."""

    step: int
    """The place of the step."""
    role: str
    phase: str
    ranks: np.ndarray
    processes: np.ndarray
    seconds: np.ndarray
    first: np.ndarray
    """When each entered it, ns."""
    last: np.ndarray
    """When each left it for the last time, ns."""
    wait: Wait
    """How long they wait for the slowest."""
    tokens: np.ndarray
    """The tokens that each noted with the phase; 0: none."""
    who: str
    """Those that the others wait for, by name: `actor 5`, `ranks 2-3 of actor`."""
    slow: tuple[int, ...]
    """Their processes."""


def groups_of(recorded: Recorded, timeline: Timeline, meetings: Meetings) -> list[list[Group]]:
    """Group the outermost phases by step, then by role and name.

    Where ranks write steps of their own, the time between their phases is a group, too, and so is
    a phase of one rank, for which the others wait. Elsewhere a rank alone makes no group.
    """
    found: list[list[Group]] = [[] for _ in range(len(timeline))]
    rows = recorded.phases
    chosen = ~rows["nested"]
    if timeline.leads_fleet:
        chosen &= rows["process"] != timeline.leader
    rows = rows[chosen]
    if not timeline.leads_fleet:
        rows = np.concatenate([rows, _between(recorded, timeline, rows, meetings)])
    steps = timeline.of(rows)
    rows, steps = rows[steps >= 0], steps[steps >= 0]
    if not len(rows):
        return found
    names, roles, ranks = _whose(recorded)
    hosts = [process.here.host for process in recorded.processes]
    role, rank = roles[rows["process"]], ranks[rows["process"]]
    order = np.lexsort((rows["start"], rank, rows["name"], role, steps))
    rows, steps, role, rank = rows[order], steps[order], role[order], rank[order]
    edges = [*np.flatnonzero(begins(steps, role, rows["name"])).tolist(), len(rows)]
    has_peers = [
        not timeline.leads_fleet and len(np.unique(rank[role == number])) > 1
        for number in range(len(names))
    ]
    for start, end in pairwise(edges):
        if rank[start] == rank[end - 1] and not has_peers[role[start]]:
            continue
        own, ranks_here = rows[start:end], rank[start:end]
        first = np.flatnonzero(begins(ranks_here))
        seconds, last = _unions(own, first) / 1e9, np.maximum.reduceat(own["end"], first)
        processes, wait, places, host = own["process"][first], _ALONE, [0], ""
        if len(first) > 1:
            took = seconds.tolist()
            wait = wait_of(took, last.tolist())
            places, host = slow_of(took, [hosts[one] for one in processes.tolist()])
        who = whose(recorded.processes[processes[places[0]]].target)
        if len(places) > 1:
            slow = ranks_here[first][places].tolist()
            who = together(slow, host, of=f" of {names[role[start]]}")
        found[steps[start]].append(
            Group(
                step=int(steps[start]),
                role=names[role[start]],
                phase=recorded.words[own["name"][0]],
                ranks=ranks_here[first],
                processes=processes,
                seconds=seconds,
                first=own["start"][first],
                last=last,
                wait=wait,
                tokens=np.add.reduceat(own["tokens"], first),
                who=who,
                slow=tuple(processes[places].tolist()),
            )
        )
    return found


def _unions(rows: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return how long each rank was in the phase, whose *rows* begin at *first*.

    Calls of one actor may overlap; that time counts once.
    """
    lengths: np.ndarray = np.add.reduceat(rows["end"] - rows["start"], first)
    if len(first) < len(rows):
        edges = [*first.tolist(), len(rows)]
        for place, (start, end) in enumerate(pairwise(edges)):
            if end - start > 1:
                own = rows[start:end]
                lengths[place] = covered(
                    zip(own["start"].tolist(), own["end"].tolist(), strict=True)
                )
    return lengths


def _between(
    recorded: Recorded, timeline: Timeline, rows: np.ndarray, meetings: Meetings
) -> np.ndarray:
    """Make a row for each step of a rank of the time that lies in none of its phases, *rows*.

    What it waits for the rank that comes last to a meeting does not count. Its place is the
    beginning of the step; what counts is how long it is.
    """
    steps = recorded.steps[recorded.steps["step"] != NO_STEP]
    made: np.ndarray = steps.copy()
    made["name"], made["nested"] = recorded.words.number(BETWEEN), False
    order = np.lexsort((rows["start"], rows["step"], rows["process"]))
    rows = rows[order]
    keys = list(zip(rows["process"].tolist(), rows["step"].tolist(), strict=True))
    starts = {key: place for place, key in reversed(list(enumerate(keys)))}
    ends = {key: place + 1 for place, key in enumerate(keys)}
    for place, (step, nth) in enumerate(zip(steps, timeline.of(steps).tolist(), strict=True)):
        key = int(step["process"]), int(step["step"])
        own = rows[starts.get(key, 0) : ends.get(key, 0)]
        inside = clipped(
            [
                *zip(own["start"].tolist(), own["end"].tolist(), strict=True),
                *meetings.waits.get((nth, key[0]), ()),
            ],
            int(step["start"]),
            int(step["end"]),
        )
        made["end"][place] = step["end"] - covered(inside)
    return made


def _whose(recorded: Recorded) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the roles by name, and the number of the role and the rank (or replica) of each."""
    targets = [process.target for process in recorded.processes]
    names = sorted({target.role for target in targets})
    roles = np.array([names.index(target.role) for target in targets], dtype=np.int64)
    ranks = [
        target.rank if target.replica is None or target.worker is not None else target.replica
        for target in targets
    ]
    return names, roles, np.array(ranks, dtype=np.int64)


def ranks_of(group: Group) -> Ranks:
    """Return the slowest rank of *group*, and how long the others wait for it."""
    seconds, wait = group.seconds.tolist(), group.wait
    most, slowest = seconds[wait.slowest], wait.slowest
    return Ranks(
        role=group.role,
        phase=group.phase,
        ranks=len(seconds),
        median_s=median(seconds),
        max_s=most,
        slowest=int(group.ranks[slowest]),
        who=group.who,
        wait_s=wait.seconds,
        waste_s=most - float(group.seconds.mean()),
        meets=wait.meets,
    )


def frontier_of(groups: list[Group]) -> Iterator[Stage]:
    """Return what each stage adds to the slowest rank of a role, whose time they add up to.

    Stages come in the order in which the last rank enters them. A rank without such a stage
    spends nothing there. Between phases, a rank may work while others are slower in a phase: that
    time does not count.
    """
    roles: dict[str, list[Group]] = {}
    for group in groups:
        roles.setdefault(group.role, []).append(group)
    for role, own in roles.items():
        own.sort(key=lambda group: (group.phase != BETWEEN, int(group.first.max())))
        ranks = np.unique(np.concatenate([group.ranks for group in own]))
        spent = np.zeros((len(own), len(ranks)))
        for row, group in zip(spent, own, strict=True):
            row[np.searchsorted(ranks, group.ranks)] = group.seconds
        if own[0].phase == BETWEEN:
            for row, group in zip(spent[1:], own[1:], strict=True):
                if not group.wait.meets:
                    spent[0] = np.maximum(spent[0] - (row.max() - row), 0.0)
        behind = np.cumsum(spent, axis=0).max(axis=1)
        for group, seconds in zip(own, np.diff(behind, prepend=0.0).tolist(), strict=True):
            yield Stage(role, group.phase, seconds)


def tables_of(
    groups: Sequence[Sequence[Group]], numbers: Sequence[int]
) -> tuple[list[RankTable], int]:
    """Lay out seconds by rank and step.

    The last value counts the steps that the largest tables leave out.
    """
    by_phase: dict[tuple[str, str], list[Group]] = {}
    for step in groups:
        for group in step:
            by_phase.setdefault((group.role, group.phase), []).append(group)
    tables, left_out = list[RankTable](), 0
    for (role, phase), found in sorted(by_phase.items()):
        ranks = np.unique(np.concatenate([group.ranks for group in found]))
        seconds = np.full((len(ranks), len(found)), np.nan)
        for column, group in enumerate(found):
            seconds[np.searchsorted(ranks, group.ranks), column] = group.seconds
        shown = max(1, min(len(found), _MOST_CELLS // len(ranks)))
        left_out = max(left_out, len(found) - shown)
        tables.append(_table(role, phase, ranks, seconds[:, -shown:], [
            int(numbers[group.step]) for group in found[-shown:]
        ]))  # fmt: skip
    return tables, left_out


def _table(
    role: str, phase: str, ranks: np.ndarray, seconds: np.ndarray, steps: list[int]
) -> RankTable:
    rows = tuple(
        tuple(None if value != value else value for value in row)  # noqa: PLR0124 -- NaN
        for row in seconds.tolist()
    )
    return RankTable(role, phase, tuple(ranks.tolist()), tuple(steps), rows)
