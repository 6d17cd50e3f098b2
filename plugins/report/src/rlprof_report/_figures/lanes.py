"""The lanes of a page: for each process, bars of phases and lines of counters over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report.values import Counter, Lane

if TYPE_CHECKING:
    from rlprof import Run
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans.recorded import Recorded

_MOST_BARS = 200_000
_MOST_POINTS = 500
"""Of one counter."""
_UNITS = {"bytes": "B", "busy": "share", "use": "share", "w": "W"}


def lanes_of(recorded: Recorded, timeline: Timeline, epoch: int) -> tuple[list[Lane], int]:
    """Make a lane for each process that has phases, the leader first; count the dropped bars.

    If there are too many bars, the longest stay.
    """
    rows = recorded.phases[timeline.of(recorded.phases) >= 0]
    left_out = max(0, len(rows) - _MOST_BARS)
    if left_out:
        lengths = rows["end"] - rows["start"]
        rows = rows[np.argpartition(lengths, left_out)[left_out:]]
    rows = rows[np.lexsort((rows["start"], rows["process"]))]
    edges = np.searchsorted(rows["process"], np.arange(len(recorded.processes) + 1))
    order = sorted(range(len(recorded.processes)), key=lambda place: place != timeline.leader)
    lanes = []
    for place in order:
        own = rows[edges[place] : edges[place + 1]]
        if len(own):
            process = recorded.processes[place]
            bars = zip(
                (recorded.words[name] for name in own["name"].tolist()),
                ((own["start"] - epoch) / 1e9).tolist(),
                ((own["end"] - epoch) / 1e9).tolist(),
                strict=True,
            )
            title = f"{process.target} · {process.here.host}"
            lanes.append(Lane(process.name, title, tuple(bars)))
    return lanes, left_out


@attrs.define
class _Line:
    """One counter: each point is the mean of `each` samples, the last one of `held` so far."""

    times: list[float] = attrs.field(factory=list)
    values: list[float] = attrs.field(factory=list)
    each: int = 1
    held: int = 0

    def add(self, time: float, value: float) -> None:
        """Take a sample; where there are too many points, make one of every two."""
        if self.held in {0, self.each}:
            if len(self.times) == _MOST_POINTS:
                self.times, self.values = _halved(self.times), _halved(self.values)
                self.each *= 2
            self.times.append(time)
            self.values.append(value)
            self.held = 1
            return
        self.held += 1
        self.times[-1] += (time - self.times[-1]) / self.held
        self.values[-1] += (value - self.values[-1]) / self.held


def counters_of(run: Run, epoch: int, problems: list[str]) -> tuple[Counter, ...]:
    """Return every counter of every process over time, in seconds after *epoch*."""
    lines: dict[tuple[str, str], _Line] = {}
    for sample in run.counters(problems):
        process = str(sample.target)
        for name, value in sample.values.items():
            line = lines.setdefault((process, name), _Line())
            line.add((sample.time_ns - epoch) / 1e9, float(value))
    return tuple(
        Counter(process, name, _unit(name), tuple(line.times), tuple(line.values))
        for (process, name), line in sorted(lines.items())
    )


def _halved(numbers: list[float]) -> list[float]:
    return [(a + b) / 2 for a, b in zip(numbers[::2], numbers[1::2], strict=True)]


def _unit(name: str) -> str:
    return _UNITS.get(name.rpartition("_")[2], "")
