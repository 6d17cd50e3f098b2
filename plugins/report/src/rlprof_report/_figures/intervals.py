"""Sums over stretches of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Interval = tuple[int, int]


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Join what overlaps or touches, sorted."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = found[-1][0], end
        elif end > start:
            found.append((start, end))
    return found


def covered(intervals: Iterable[Interval]) -> int:
    """Return how much time *intervals* take together, none of it counted twice."""
    return sum(end - start for start, end in merged(intervals))


def clipped(intervals: Iterable[Interval], start: int, end: int) -> list[Interval]:
    """Cut *intervals* to the time between *start* and *end*."""
    cut = [(max(one, start), min(other, end)) for one, other in intervals]
    return [(one, other) for one, other in cut if other > one]


def without(left: Iterable[Interval], right: Iterable[Interval]) -> int:
    """Return the time that is in *left* and not in *right*."""
    other = list(right)
    return covered([*left, *other]) - covered(other)
