"""Whether the clocks agree with what the ranks did together: a barrier ends for all at once.

The end of the same collective, or barrier, is one moment on all ranks but for the time on the wire.
It is a check, never a correction: what is wrong is told, with the number, and nothing is moved.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median, median_high, median_low
from typing import TYPE_CHECKING

import attrs

from rlprof.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlprof_timeline._merge import Moved
    from rlprof_timeline._source import Trace

_WIRE_NS = 1_000_000
"""What the wire and the host may take: a millisecond."""
_LATER_NS = 1_000_000_000
"""Hosts that are so far apart are fewer than folders with the traces of several steps."""
_UNITS = (("days", 86400e9, 2), ("hours", 3600e9, 2), ("s", 1e9, 10))
"""A unit, its nanoseconds, and so many of it are told in it."""


@attrs.frozen
class Apart:
    """A trace whose clock does not agree with those of the others of its window."""

    shown: str
    by_ns: int
    """The median of how much later its meetings end; less than nothing: earlier."""
    meetings: int
    allowed_ns: int


@attrs.frozen
class Checked:
    """What the meetings of all traces say of their clocks."""

    traces: int = 0
    meetings: int = 0
    largest_ns: int | None = None
    apart: tuple[Apart, ...] = ()

    def warnings(self) -> Iterator[str]:
        """Say of each trace that is apart how far, and what that means."""
        for one in self.apart:
            where = "after" if one.by_ns > 0 else "before"
            why = "the clocks of the hosts disagree, and the timeline with them"
            if abs(one.by_ns) > _LATER_NS:
                why = f"it has recorded another step than they, or {why}"
            yield (
                f"{one_line(one.shown, longest=300)}: its {one.meetings} collectives end "
                f"{time_of(one.by_ns)} {where} those of the others, and its clock may be "
                f"{time_of(one.allowed_ns)} off at most: {why}"
            )

    def described(self) -> Mapping[str, object]:
        """Return what the timeline's own object says."""
        return attrs.asdict(self)


def time_of(ns: int) -> str:
    """Show how long, sign aside: `4.500 ms`, `12.3 s`, `341.1 days`."""
    for unit, size, least in _UNITS:
        if abs(ns) >= least * size:
            return f"{abs(ns) / size:.1f} {unit}"
    return f"{abs(ns) / 1e6:.3f} ms"


def checked(read: Iterable[tuple[Trace, Moved]]) -> Checked:
    """Compare the ends of the meetings of the traces of one window and tool."""
    together: defaultdict[object, list[tuple[Trace, Moved]]] = defaultdict(list)
    for trace, moved in read:
        if moved.meetings:
            together[trace.together].append((trace, moved))
    traces, meetings, largest, apart = 0, 0, None, list[Apart]()
    for ones in together.values():
        ends = [_numbered(moved.meetings) for _, moved in ones]
        shared = set.intersection(*map(set, ends))
        if len(ones) < 2 or not shared:
            continue
        traces += len(ones)
        meetings += len(shared)
        middle = {key: _middle([own[key] for own in ends]) for key in shared}
        bounds = [_bound(moved) for _, moved in ones]
        for (trace, _), own, bound in zip(ones, ends, bounds, strict=True):
            by = round(median(own[key] - middle[key] for key in shared))
            largest = by if largest is None or abs(by) > abs(largest) else largest
            allowed = bound + max(bounds) + _WIRE_NS
            if abs(by) > allowed:
                apart.append(Apart(trace.shown, by, len(shared), allowed))
    return Checked(traces, meetings, largest, tuple(apart))


def _numbered(meetings: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Tell the first of a name from the second, in the order of time."""
    seen: defaultdict[str, int] = defaultdict(int)
    found = {}
    for name, end_ns in sorted(meetings, key=lambda meeting: meeting[1]):
        found[name, seen[name]] = end_ns
        seen[name] += 1
    return found


def _middle(ends: Sequence[int]) -> int:
    """Return the median to the nanosecond: half the sum of two epochs is none in a double."""
    return (median_low(ends) + median_high(ends)) // 2


def _bound(moved: Moved) -> int:
    clock = moved.clock
    return 0 if clock is None or clock.error_ns is None else clock.error_ns
