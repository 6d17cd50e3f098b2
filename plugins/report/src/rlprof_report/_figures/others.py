"""Seconds of spans that programs name themselves, by step, name and process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans import Recorded

Others = dict[str, dict[int, float]]
"""By name, then by the place of the process."""


def others_of(recorded: Recorded, timeline: Timeline) -> list[Others]:
    """Add up the spans of no trajectory in each step."""
    found: list[Others] = [{} for _ in range(len(timeline))]
    steps = timeline.of(recorded.others)
    rows, steps = recorded.others[steps >= 0], steps[steps >= 0]
    if not len(rows):
        return found
    order = np.lexsort((rows["process"], rows["name"], steps))
    rows, steps = rows[order], steps[order]
    keys = np.stack([steps, rows["name"], rows["process"]])
    first = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
    sums = np.add.reduceat(rows["end"] - rows["start"], first) / 1e9
    for (step, name, process), seconds in zip(
        keys[:, first].T.tolist(), sums.tolist(), strict=True
    ):
        found[step].setdefault(recorded.words[name], {})[process] = seconds
    return found


def pauses_of(others: Others) -> dict[str, float]:
    """Say how long the garbage collector held up the process that it held up longest."""
    return {"gc": max(others["gc"].values())} if "gc" in others else {}
