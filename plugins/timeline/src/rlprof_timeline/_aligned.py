"""A plan with all hosts on one clock: spans, counters, windows and traces move together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlprof_run import Sample
    from rlprof_timeline._merge import Moved
    from rlprof_timeline._source import Plan, Source, Trace, TraceGroup
    from rlprof_timeline._spans import Slice
    from rlprof_traces.clocks import HostClock


def aligned(plan: Plan, read: Sequence[Moved], clocks: Mapping[str, HostClock]) -> Plan:
    """Move everything on one of *clocks* to the clock of its reference.

    A trace, which was *read* before, moves as a whole: by the lead of its clock at its middle.
    """
    left = iter(read)
    sources = []
    for source in plan.sources:
        groups = tuple(_group(group, left, clocks) for group in source.groups)
        sources.append(_moved(attrs.evolve(source, groups=groups), clocks.get(source.host)))
    return attrs.evolve(plan, sources=tuple(sources))


def _group(group: TraceGroup, read: Iterator[Moved], clocks: Mapping[str, HostClock]) -> TraceGroup:
    traces = (
        _trace(trace, moved, clocks.get(trace.host))
        for trace, moved in zip(group.traces, read, strict=False)
    )
    return attrs.evolve(group, traces=tuple(traces))


def _trace(trace: Trace, moved: Moved, clock: HostClock | None) -> Trace:
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
