"""Compares the clocks of hosts by the collectives in their traces, and chooses which to move.

It compares hosts, never two processes of one host: these share a clock, and if their collectives
seem to end at different times, a thread was late. All that a host has recorded moves together.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal

import attrs

from rlprof.errors import one_line
from rlprof_traces.clocks import Ends, host_clocks

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from rlprof_run import Sample
    from rlprof_timeline._merge import Moved
    from rlprof_timeline._source import Plan, Source, Trace
    from rlprof_timeline._spans import Slice
    from rlprof_traces.clocks import HostClock

Align = Literal["auto", "collectives", "wall"]
_LATER_NS = 1_000_000_000
"""Hosts that are so far apart are fewer than folders with the traces of several steps."""
_TOLD = 8
_UNITS = (("days", 86400e9, 2), ("hours", 3600e9, 2), ("s", 1e9, 10))
"""A unit, its nanoseconds, and the least number of nanoseconds shown in it."""


@attrs.frozen
class Check:
    """The clocks of the compared hosts, and which of them are moved."""

    clocks: tuple[HostClock, ...] = ()
    moved: Mapping[str, HostClock] = attrs.field(factory=dict)
    """By host."""
    names: Mapping[str, str] = attrs.field(factory=dict)
    """Host → its name."""
    is_known: bool = True
    """Whether the host of each trace is known; else each trace counts as a host."""

    def warnings(self) -> Iterator[str]:
        """Say how far off each clock is that disagrees and is not moved."""
        apart = [one for one in self.clocks if one.says_more and one.host not in self.moved]
        return _first([f"{self._far(one)}: {self._why(one)}" for one in apart])

    def moves(self) -> Iterator[str]:
        """Say how far each clock is moved."""
        words = []
        for one in self.moved.values():
            drift = f", drifting {one.drift * 1e6:.1f} ppm" if one.drift else ""
            words.append(f"{self._far(one)}{drift}: moved")
        return _first(words)

    def agreement(self) -> str:
        """Say how far apart the clocks seem that are not moved."""
        rest = [one for one in self.clocks if one.host not in self.moved]
        if not rest:
            return ""
        apart = time_of(max(abs(one.largest_ns) for one in rest))
        what = "hosts" if self.is_known else "files"
        return f"collectives of {len(rest) + 1} {what} end within {apart}"

    def described(self) -> Mapping[str, object]:
        """Return the values for the `rlprof` object of the timeline."""
        return {
            "clocks": [
                {
                    "host": self.names[one.host],
                    "reference": self.names[one.reference],
                    "collectives": one.collectives,
                    "windows": one.windows,
                    "ahead_ns": one.ahead_ns,
                    "bound_ns": one.bound_ns,
                    "drift_ppm": round(one.drift * 1e6, 3),
                    "moved": one.host in self.moved,
                }
                for one in self.clocks
            ]
        }

    def _far(self, one: HostClock) -> str:
        host, reference = (
            one_line(self.names[key], longest=300) for key in (one.host, one.reference)
        )
        where = "after" if one.largest_ns > 0 else "before"
        return (
            f"{host}: its {one.collectives} collectives end {time_of(one.largest_ns)} {where} "
            f"those of {reference}, give or take {time_of(one.bound_ns + one.error_ns)}"
        )

    def _why(self, one: HostClock) -> str:
        move = "to move it: --align collectives"
        if self.is_known:
            return f"the clocks of the hosts disagree, and the timeline with them; {move}"
        step = "it has recorded another step, or " if abs(one.largest_ns) > _LATER_NS else ""
        return f"{step}they are of two hosts whose clocks disagree; {move}"


def _first(words: Sequence[str]) -> Iterator[str]:
    yield from words[:_TOLD]
    if len(words) > _TOLD:
        yield f"and {len(words) - _TOLD} more; all are in the timeline's own object"


def time_of(ns: int) -> str:
    """Format a duration without its sign: `4.500 ms`, `12.3 s`, `341.1 days`."""
    for unit, size, least in _UNITS:
        if abs(ns) >= least * size:
            return f"{abs(ns) / size:.1f} {unit}"
    return f"{abs(ns) / 1e6:.3f} ms"


def checked(plan: Plan, read: Sequence[Moved], align: Align = "auto") -> Check:
    """Compare the hosts of *plan*, and choose which clocks to move.

    By default, a clock is moved if the collectives show that it is wrong, its host is known, and
    no driver of a fleet has measured it.
    """
    ends = _ends(zip(plan.traces(), read, strict=True), align)
    clocks = host_clocks(ends, list(plan.hosts))
    chosen = {
        "wall": (),
        "collectives": clocks,
        "auto": (
            one
            for one in clocks
            if one.says_more and plan.knows_hosts and one.host not in plan.measured
        ),
    }[align]
    return Check(clocks, {one.host: one for one in chosen}, plan.hosts, plan.knows_hosts)


def _ends(read: Iterable[tuple[Trace, Moved]], align: Align) -> list[Ends]:
    together: defaultdict[Hashable, list[tuple[Trace, Moved]]] = defaultdict(list)
    for trace, moved in read:
        if moved.meetings:
            together[trace.together].append((trace, moved))
    return [
        Ends(trace.host, (key, nth), moved.meetings, (moved.clock and moved.clock.error_ns) or 0)
        for key, ones in together.items()
        for nth, window in enumerate(_at_once(ones, align))
        for trace, moved in window
    ]


def _at_once(ones: list[tuple[Trace, Moved]], align: Align) -> Iterator[list[tuple[Trace, Moved]]]:
    """Group traces of unknown windows: those of one window overlap in time.

    With `--align collectives`, the clocks are in doubt: then one trace of each rank is a window.
    """
    ranks = {trace.about.get("rank", trace.shown) for trace, _ in ones}
    is_one_each = align == "collectives" and len(ranks) == len(ones)
    if is_one_each or ones[0][0].is_of_known_window:
        yield ones
        return
    found: list[tuple[Trace, Moved]] = []
    last = 0
    for one in sorted(ones, key=lambda one: min(end for _, end, _ in one[1].meetings)):
        ends = [end for _, end, _ in one[1].meetings]
        if found and min(ends) > last + _LATER_NS:
            yield found
            found = []
        found.append(one)
        last = max(last, *ends)
    yield found


def aligned(plan: Plan, read: Sequence[Moved], clocks: Mapping[str, HostClock]) -> Plan:
    """Move everything on one of *clocks* to the clock of its reference.

    A trace, which was *read* before, moves as a whole: by the lead of its clock at its middle.
    """
    left = iter(read)
    sources = []
    for source in plan.sources:
        groups = []
        for group in source.groups:
            traces = tuple(_trace(trace, next(left), clocks) for trace in group.traces)
            groups.append(attrs.evolve(group, traces=traces))
        moved = attrs.evolve(source, groups=tuple(groups))
        sources.append(_moved(moved, clocks.get(source.host)))
    return attrs.evolve(plan, sources=tuple(sources))


def _trace(trace: Trace, moved: Moved, clocks: Mapping[str, HostClock]) -> Trace:
    clock = clocks.get(trace.host)
    if clock is None or moved.earliest_ns is None:
        return trace
    ends = sorted(end_ns for _, end_ns, _ in moved.meetings)
    at_ns = ends[len(ends) // 2] if ends else moved.earliest_ns
    by_ns = clock.on_reference(at_ns) - at_ns
    return attrs.evolve(trace, shift_ns=trace.shift_ns + by_ns)


def _moved(source: Source, clock: HostClock | None) -> Source:
    if clock is None:
        return source
    moved = clock.on_reference

    def slices(left_out: Mapping[str, str]) -> list[Slice]:
        return [
            attrs.evolve(item, start_ns=moved(item.start_ns), end_ns=moved(item.end_ns))
            for item in source.slices(left_out)
        ]

    def counters() -> Iterator[Sample]:
        for sample in source.counters():
            yield attrs.evolve(sample, time_ns=moved(sample.time_ns))

    starts = tuple(map(moved, source.starts))
    return attrs.evolve(source, starts=starts, slices=slices, counters=counters)
