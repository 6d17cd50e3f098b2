"""The row of each slice, so that none is lost and trajectories stay apart.

Separate because of the viewer: it drops the second of two slices on one row that overlap without
nesting, and spans of asyncio tasks and threads do just that.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from rlprof_timeline._spans import Slice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LANES = ("steps", "phases", "rlprof", "rlprof exports", "windows", "spans")
"""From top to bottom; each has as many rows as it needs. Below them are the trajectories."""


def rows(slices: Sequence[Slice]) -> Iterator[tuple[str, str, list[Slice]]]:
    """Yield lane, name and slices of each row, from top to bottom."""
    groups = _trajectories(slices)
    inside = {item.id for group in groups for item in group}
    for lane in _LANES:
        ours = (item for item in slices if item.lane == lane)
        found = _by_row(item for item in ours if lane != "spans" or item.id not in inside)
        for number, row in enumerate(found, 1):
            yield lane, lane if number == 1 else f"{lane} {number}", row
    for number, lane_rows in enumerate(_in_lanes(groups), 1):
        for nth, row in enumerate(lane_rows, 1):
            where = f"{number}.{nth}" if nth > 1 else str(number) if number > 1 else ""
            yield "spans", f"trajectories {where}".rstrip(), row


def in_rows(slices: Iterable[Slice]) -> Iterator[tuple[int, Slice]]:
    """Return the row of each slice: under its parent if it fits, else the first free row.

    Only parents have slices under them: slices that merely overlap in time are on other rows.
    """
    stacks: list[list[Slice]] = []  # of each row: the open slices, outermost first
    row_of: dict[int | None, int] = {}
    taken: list[tuple[int, int]] = []  # until when, row
    free: list[int] = []
    for item in sorted(slices, key=_order):
        while taken and taken[0][0] <= item.start_ns:
            heappush(free, heappop(taken)[1])
        row = None if item.parent is None else row_of.get(item.parent)
        if row is None or not _fits(stacks[row], item):
            if not free:
                heappush(free, len(stacks))
                stacks.append([])
            row = heappop(free)
            stacks[row] = []
            heappush(taken, (item.end_ns, row))
        stacks[row].append(item)
        row_of[item.id] = row
        yield row, item


def _fits(row: list[Slice], item: Slice) -> bool:
    while row and row[-1].end_ns <= item.start_ns:
        row.pop()
    return bool(row) and row[-1].id == item.parent and item.end_ns <= row[-1].end_ns


def _by_row(slices: Iterable[Slice]) -> list[list[Slice]]:
    found: defaultdict[int, list[Slice]] = defaultdict(list)
    for row, item in in_rows(slices):
        found[row].append(item)
    return [*found.values()]


def _trajectories(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Group each trajectory with all slices below it.

    A trajectory that has not ended, in a live or killed run, has no slice; its children are found
    by its id, and by parents that have no slice either.
    """
    ours = [item for item in slices if item.lane == "spans"]
    there = {item.id for item in slices}
    groups: list[list[Slice]] = []
    group_of: dict[int | None, list[Slice]] = {}
    open_ones: dict[str, list[Slice]] = {}
    for item in sorted(ours, key=_order):
        group = group_of.get(item.parent)
        if group is None and item.trajectory is not None:
            if item.name == f"trajectory {item.trajectory}":
                groups.append(group := [])
            elif item.parent is not None and item.parent not in there:
                group = open_ones.get(item.trajectory)
                if group is None:
                    groups.append(group := open_ones.setdefault(item.trajectory, []))
        if group is not None:
            group.append(item)
            group_of[item.id] = group
    return groups


def _in_lanes(groups: list[list[Slice]]) -> list[list[list[Slice]]]:
    """Give each trajectory a lane until its last slice has ended; return the rows of each lane.

    A lane has a second row only for slices of a trajectory that overlap.
    """
    stretches = [
        Slice("", "", group[0].start_ns, max(item.end_ns for item in group), {}, number)
        for number, group in enumerate(groups)
    ]
    lanes: defaultdict[int, defaultdict[int, list[Slice]]]
    lanes = defaultdict(lambda: defaultdict(list))
    for lane, stretch in in_rows(stretches):
        for row, item in in_rows(groups[stretch.id or 0]):
            lanes[lane][row].append(item)
    return [[*rows.values()] for rows in lanes.values()]


def _order(item: Slice) -> tuple[int, int, int]:
    return item.start_ns, -item.end_ns, item.id or 0
