"""The bars of a Gantt: phases of every process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report.values import Lane

if TYPE_CHECKING:
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans import Recorded

_MOST = 200_000


def lanes_of(recorded: Recorded, timeline: Timeline, epoch: int) -> tuple[list[Lane], int]:
    """Make a lane for each process that has phases, the leader first; count what is left out.

    Of too many bars the longest stay.
    """
    rows = recorded.phases[timeline.of(recorded.phases) >= 0]
    left_out = max(0, len(rows) - _MOST)
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
