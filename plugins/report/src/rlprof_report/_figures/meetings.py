"""Collectives outside of phases: which rank reaches one last, and how long the others wait."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rlprof_report._figures.intervals import Interval
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans.recorded import Recorded

Place = tuple[int, int, int]
"""The place of a step, the number of a phase's name, how many of that name come before it."""
END = -2
"""The end of a step, among the numbers of names."""
_START = -3
"""The beginning of a step, likewise."""


class Meetings:
    """The collectives that are in no phase.

    Ranks meet in one if all enter the next phase, or end the step, together, after different times
    in no phase.
    """

    def __init__(self, recorded: Recorded, timeline: Timeline) -> None:
        self.last: dict[str, dict[Place, tuple[int, int]]] = {}
        """When the last rank of a role came to the meeting before a phase, and which rank."""
        self.waits: dict[tuple[int, int], list[Interval]] = {}
        """When each process waited for it, by the place of the step and of the process."""
        if timeline.leads_fleet:
            return
        by_role: dict[str, list[int]] = {}
        for place, process in enumerate(recorded.processes):
            by_role.setdefault(process.target.role, []).append(place)
        for role, own in by_role.items():
            if len(own) > 1:
                self.last[role] = self._of(recorded, timeline, own)

    def _of(self, recorded: Recorded, timeline: Timeline, processes: list[int]) -> dict[
        Place, tuple[int, int]
    ]:  # fmt: skip
        rows = recorded.phases
        rows = rows[~rows["nested"] & ~rows["of_fleet"] & np.isin(rows["process"], processes)]
        steps = recorded.steps[np.isin(recorded.steps["process"], processes)]
        rows, steps = rows[timeline.of(rows) >= 0], steps[timeline.of(steps) >= 0]
        step = np.concatenate([timeline.of(one) for one in (steps, rows, steps)])
        process = np.concatenate([one["process"] for one in (steps, rows, steps)])
        name = np.repeat([_START, 0, END], [len(steps), len(rows), len(steps)])
        name[len(steps) : len(steps) + len(rows)] = rows["name"]
        start = np.concatenate([steps["start"], rows["start"], steps["end"]])
        until = np.concatenate([steps["start"], rows["end"], steps["end"]])
        order = np.lexsort((start, process, step))
        step, process, name, start, until = (
            one[order] for one in (step, process, name, start, until)
        )
        before, nth = start.copy(), times_of(step, process, name)
        follows = (step[1:] == step[:-1]) & (process[1:] == process[:-1])
        before[1:][follows] = np.minimum(until[:-1], start[1:])[follows]
        order = np.lexsort((start, nth, name, step))
        places = np.stack([step, name, nth])[:, order]
        new = np.flatnonzero(begins(*places))
        found = {}
        for first, end in pairwise([*new.tolist(), len(order)]):
            own = order[first:end]
            gaps = start[own] - before[own]
            late = start[own[-1]] - start[own[(len(own) - 1) // 2]]
            if len(own) > 1 and late < (gaps.max() - gaps.min()) / 2:
                last = own[np.argmax(before[own])]
                came = int(before[last])
                found[tuple(places[:, first].tolist())] = came, int(process[last])
                for one in own[before[own] < came].tolist():
                    key = int(step[one]), int(process[one])
                    times = int(before[one]), min(came, int(start[one]))
                    self.waits.setdefault(key, []).append(times)
        return found


def begins(*columns: np.ndarray) -> np.ndarray:
    """Say of each row whether it differs from the one before."""
    rows = np.stack(columns)
    return np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0))[: rows.shape[1]]


def times_of(step: np.ndarray, process: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Count, for each phase of a rank in a step, those of its name before it; they are in order."""
    order = np.lexsort((np.arange(len(name)), name, process, step))
    new = begins(step[order], process[order], name[order])
    first = np.maximum.accumulate(np.where(new, np.arange(len(name)), 0))
    times = np.empty(len(name), dtype=np.int64)
    times[order] = np.arange(len(name)) - first
    return times
