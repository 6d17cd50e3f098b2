"""Inputs of causes that no figure shows: spans of programs, and phases that outlast members."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._figures.intervals import Interval, covered, without

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof_report._figures.phases import Piece
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans.recorded import Recorded

Others = dict[str, dict[int, float]]
"""By name, then by the place of the process."""


def others_of(recorded: Recorded, timeline: Timeline) -> list[Others]:
    """Add up the spans of no trajectory in each step."""
    found: list[Others] = [{} for _ in range(len(timeline))]
    rows = recorded.others
    columns = (rows[key].tolist() for key in ("name", "process", "start", "end"))
    for step, name, process, start, end in zip(timeline.of(rows).tolist(), *columns, strict=True):
        if step >= 0:
            own = found[step].setdefault(recorded.words[name], {})
            own[process] = own.get(process, 0.0) + (end - start) / 1e9
    return found


Between = Counter[tuple[int, str]]
"""Nanoseconds by the place of a process and the name of its span or phase."""


def between_of(
    recorded: Recorded, timeline: Timeline, pieces: Sequence[Sequence[Piece]]
) -> list[Between]:
    """Add up what goes on between the leader's phases in each step.

    That is its own spans, and the phases of one process of each other role.
    """
    found, leader = [Between() for _ in pieces], recorded.processes[timeline.leader]
    firsts = {one.target.role: at for at, one in reversed([*enumerate(recorded.processes)])}
    firsts.pop(leader.target.role)
    spans, phases = recorded.others, recorded.phases
    spans = spans[(spans["process"] == timeline.leader)]
    spans = spans[spans["name"] != recorded.words.number("gc")]
    phases = phases[~phases["nested"] & np.isin(phases["process"], list(firsts.values()))]
    in_phases = [[(one.start, one.end) for one in own] for own in pieces]
    times: dict[tuple[int, int, int], list[Interval]] = {}
    for rows in (spans, phases):
        steps = timeline.of(rows)
        columns = (rows[name].tolist() for name in ("process", "name"))
        starts = np.maximum(rows["start"], timeline.starts[steps]).tolist()
        ends = np.minimum(rows["end"], timeline.ends[steps]).tolist()
        for step, process, name, *one in zip(steps.tolist(), *columns, starts, ends, strict=True):
            if step >= 0:
                times.setdefault((step, process, name), []).append((one[0], one[1]))
    for (step, process, name), own in times.items():
        found[step][process, recorded.words[name]] = without(own, in_phases[step])
    return found


def pauses_of(others: Others) -> dict[str, float]:
    """Return how long the garbage collector stopped the process that it stopped longest."""
    return {"gc": max(others["gc"].values())} if "gc" in others else {}


@attrs.frozen
class Paused:
    """The garbage collection of one step."""

    phases: Mapping[int, str]
    """The phase that most of it falls into, by the place of the process."""
    any_s: Mapping[str, float]
    """How long at least one process collects, by role."""


def paused_in(recorded: Recorded, timeline: Timeline) -> list[Paused]:
    """Say for each step where, and how long, the garbage collector stops processes."""
    phases = recorded.phases[~recorded.phases["nested"]]
    phases = phases[np.lexsort((phases["start"], phases["process"]))]
    took: list[dict[int, Counter[str]]] = [{} for _ in range(len(timeline))]
    during: list[dict[str, list[tuple[int, int]]]] = [{} for _ in range(len(timeline))]
    rows = recorded.others[recorded.others["name"] == recorded.words.number("gc")]
    edges = np.searchsorted(phases["process"], np.arange(len(recorded.processes) + 1)).tolist()
    starts, ends, names = (phases[name].tolist() for name in ("start", "end", "name"))
    columns = (rows[name].tolist() for name in ("process", "start", "end"))
    for step, process, start, end in zip(timeline.of(rows).tolist(), *columns, strict=True):
        if step >= 0:
            first, middle = edges[process], (start + end) // 2
            at = bisect_right(starts, middle, first, edges[process + 1]) - 1
            is_inside = at >= first and middle < ends[at]
            name = recorded.words[names[at]] if is_inside else ""
            took[step].setdefault(process, Counter())[name] += end - start
            role = recorded.processes[process].target.role
            during[step].setdefault(role, []).append((start, end))
    return [
        Paused(
            {process: names.most_common(1)[0][0] for process, names in own.items()},
            {role: covered(stretches) / 1e9 for role, stretches in by_role.items()},
        )
        for own, by_role in zip(took, during, strict=True)
    ]


@attrs.frozen
class Outlasted:
    """One phase of the driver in one step."""

    phase: str
    seconds: float
    """How long the driver stays in it after the last member is done."""
    process: int
    """The member that was done last, by its place."""


def outlasted_of(
    recorded: Recorded, timeline: Timeline, pieces: Sequence[Sequence[Piece]]
) -> list[list[Outlasted]]:
    """List, step by step, the phases that members write, too, and that outlast them all."""
    found: list[list[Outlasted]] = [[] for _ in pieces]
    rows = recorded.phases
    rows = rows[~rows["nested"] & (rows["process"] != timeline.leader)]
    if not timeline.leads_fleet or not len(rows):
        return found
    starts = np.concatenate([rows["start"], recorded.parts["start"]])
    ends = np.concatenate([rows["end"], recorded.parts["end"]])
    order = np.argsort(starts)
    starts, latest = starts[order], np.maximum.accumulate(ends[order])
    steps = timeline.of(rows)
    order = np.argsort(rows["end"])
    columns = (one[order].tolist() for one in (steps, rows["name"], rows["process"]))
    last = {(step, name): process for step, name, process in zip(*columns, strict=True)}
    for place, own in enumerate(pieces):
        after: dict[str, int] = {}
        for piece in own:
            at = int(np.searchsorted(starts, piece.end)) - 1
            until = piece.start if at < 0 else max(piece.start, int(latest[at]))
            after[piece.name] = after.get(piece.name, 0) + max(0, piece.end - until)
        for phase, ns in after.items():
            process = last.get((place, recorded.words.number(phase)))
            if process is not None and ns:
                found[place].append(Outlasted(phase, ns / 1e9, process))
    return found
