"""The phases of each rank of the leader's role, and which rank entered a phase last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans import Recorded


class Tracks:
    """The outermost phases of every rank, by step."""

    def __init__(self, recorded: Recorded, timeline: Timeline) -> None:
        self._words, self._targets = recorded.words, [one.target for one in recorded.processes]
        self.leader, role = timeline.leader, self._targets[timeline.leader].role
        is_own = np.array([target.role == role for target in self._targets], dtype=bool)
        rows = recorded.phases
        rows = rows[~rows["nested"] & ~rows["of_fleet"] & is_own[rows["process"]]]
        steps = timeline.of(rows)
        rows, steps = rows[steps >= 0], steps[steps >= 0]
        order = np.lexsort((rows["start"], rows["name"], rows["process"], steps))
        rows, steps = rows[order], steps[order]
        self.has_peers = len(np.unique(rows["process"])) > 1
        self._rows = rows
        self._keys = steps * len(self._targets) + rows["process"]
        self._last = self._entered_last(steps)

    def of(self, step: int, process: int) -> list[tuple[str, int, int]]:
        """Return name, start and end of each phase of *process* in the step at place *step*."""
        key = step * len(self._targets) + process
        own = self._rows[np.searchsorted(self._keys, key) : np.searchsorted(self._keys, key + 1)]
        columns = (own[name].tolist() for name in ("name", "start", "end"))
        return [(self._words[name], start, end) for name, start, end in zip(*columns, strict=True)]

    def last_into(self, step: int, phase: str, times: int) -> tuple[int, int]:
        """Return when the last rank entered *phase* after *times* others of it, and which rank."""
        return self._last.get((step, self._words.number(phase), times), (0, self.leader))

    def name(self, process: int) -> str:
        """Name a rank: `trainer 2`; empty if there is only one."""
        target = self._targets[process]
        return f"{target.role} {target.rank}" if self.has_peers else ""

    def _entered_last(self, steps: np.ndarray) -> dict[tuple[int, int, int], tuple[int, int]]:
        rows = self._rows
        if not self.has_peers:
            return {}
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (self._keys[1:] != self._keys[:-1]) | (rows["name"][1:] != rows["name"][:-1])
        first = np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))
        times = np.arange(len(rows)) - first
        order = np.lexsort((rows["start"], times, rows["name"], steps))
        keys = np.stack([steps, rows["name"], times])[:, order]
        is_last = np.append((keys[:, 1:] != keys[:, :-1]).any(axis=0), True)
        last = rows[order][is_last]
        return {
            (step, name, nth): (start, process)
            for (step, name, nth), start, process in zip(
                keys[:, is_last].T.tolist(),
                last["start"].tolist(),
                last["process"].tolist(),
                strict=True,
            )
        }
