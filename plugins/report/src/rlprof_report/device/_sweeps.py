"""Sums over intervals of time: unions, and self times of nested calls."""

from __future__ import annotations

from typing import Any

import numpy as np


def union(starts: Any, ends: Any) -> tuple[Any, Any]:
    """Merge intervals that touch or overlap; sorted."""
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    first = np.flatnonzero(np.r_[True, starts[1:] > reach[:-1]])
    return starts[first], np.maximum.reduceat(ends, first)


def covered(starts: Any, ends: Any) -> int:
    """Return how long at least one of the intervals goes on."""
    starts, ends = union(starts, ends)
    return int((ends - starts).sum())


def self_times(starts: Any, ends: Any, thread: Any) -> Any:
    """Return the time of each call without the calls inside it on its thread."""
    own = ends - starts
    for number in np.unique(thread):
        where = np.flatnonzero((thread == number) & (ends > starts))
        where = where[np.lexsort((-ends[where], starts[where]))]
        _take_children(starts[where], ends[where], where, own)
    return own


def _take_children(starts: Any, ends: Any, where: Any, own: Any) -> None:
    """Subtract from the *own* time of each call that of those right inside; sorted by start."""
    if not len(starts):
        return
    # A call is as deep as there are calls that have begun before it and go on.
    ended = np.searchsorted(np.sort(ends), starts, "right")
    depth = np.arange(len(starts)) - ended
    for level in range(1, int(depth.max()) + 1):
        here, above = np.flatnonzero(depth == level), np.flatnonzero(depth == level - 1)
        if not len(above) or not len(here):
            continue
        parent = above[np.clip(np.searchsorted(above, here) - 1, 0, None)]
        inside = np.minimum(ends[here], ends[parent]) - starts[here]
        np.subtract.at(own, where[parent], np.maximum(inside, 0))
