"""What interrupted the program, or loaded data for it, as it noted it in spans of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans import Recorded


def pauses_of(recorded: Recorded, timeline: Timeline) -> list[dict[str, float]]:
    """Add up spans by name in each step, for the process where they took longest.

    Processes pause beside one another, so sums over them would say nothing of the step.
    """
    found: list[dict[str, float]] = [{} for _ in range(len(timeline))]
    steps = timeline.of(recorded.pauses)
    rows, steps = recorded.pauses[steps >= 0], steps[steps >= 0]
    if not len(rows):
        return found
    keys = np.stack([steps, rows["name"], rows["process"]], axis=1)
    unique, places = np.unique(keys, axis=0, return_inverse=True)
    lengths = (rows["end"] - rows["start"]) / 1e9
    sums = np.bincount(places.reshape(-1), weights=lengths)
    for (step, name, _), seconds in zip(unique.tolist(), sums.tolist(), strict=True):
        word = recorded.words[name]
        found[step][word] = max(seconds, found[step].get(word, 0.0))
    return found
