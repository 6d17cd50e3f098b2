"""Whether the clocks agree with what the ranks did together: a barrier ends for all at once.

The end of the same collective, or barrier, is one moment on all ranks but for the time on the wire.
It is a check, never a correction: what is wrong is told, with the number, and nothing is moved.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
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
    is_bounded: bool = True
    """Whether the errors of their clocks are known; else they are taken for nothing."""


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
            bound = f"its clock may be {time_of(one.allowed_ns)} off at most"
            yield (
                f"{one_line(one.shown, longest=300)}: its {one.meetings} collectives end "
                f"{time_of(one.by_ns)} {where} those of the others, and "
                f"{bound if one.is_bounded else 'how far its clock is off is unknown'}: {why}"
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
    for ones in chain.from_iterable(map(_at_once, together.values())):
        ends = [_numbered(moved.meetings) for _, moved in ones]
        shared = set.intersection(*map(set, ends))
        if len(ones) < 2 or not shared:
            continue
        traces += len(ones)
        meetings += len(shared)
        middle = {key: _middle([own[key] for own in ends]) for key in shared}
        bounds = [_bound(moved) or 0 for _, moved in ones]
        is_bounded = all(_bound(moved) is not None for _, moved in ones)
        for (trace, _), own, bound in zip(ones, ends, bounds, strict=True):
            by = round(median(own[key] - middle[key] for key in shared))
            largest = by if largest is None or abs(by) > abs(largest) else largest
            allowed = bound + max(bounds) + _WIRE_NS
            if abs(by) > allowed:
                apart.append(Apart(trace.shown, by, len(shared), allowed, is_bounded))
    return Checked(traces, meetings, largest, tuple(apart))


def _at_once(ones: list[tuple[Trace, Moved]]) -> Iterator[list[tuple[Trace, Moved]]]:
    """Part traces of which nobody has said the window: those of one overlap in time."""
    if ones[0][0].is_of_known_window:
        yield ones
        return
    found: list[tuple[Trace, Moved]] = []
    last = 0
    for one in sorted(ones, key=lambda one: min(end for _, end in one[1].meetings)):
        ends = [end for _, end in one[1].meetings]
        if found and min(ends) > last + _LATER_NS:
            yield found
            found = []
        found.append(one)
        last = max(last, *ends)
    yield found


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


def _bound(moved: Moved) -> int | None:
    return None if moved.clock is None else moved.clock.error_ns
