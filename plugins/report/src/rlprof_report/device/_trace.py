"""The figures of one trace, kept when its events are dropped."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_report._slices import epoch_ns_of
from rlprof_report.device._events import FARTHEST_NS, SYNC, read_events
from rlprof_report.device._kinds import COMMUNICATION, chosen
from rlprof_report.device._temporal import idle_of, temporal_of
from rlprof_report.device._tops import compile_ns, kernels_of, operators_of
from rlprof_traces import TraceText

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlprof_report.device._events import Events
    from rlprof_report.device._kinds import Chosen
    from rlprof_report.device._tops import Total
    from rlprof_report.device.values import Idle, MemoryPeak, Temporal

_ALL = -FARTHEST_NS, FARTHEST_NS
"""The window of a trace that is not cut."""
_MOST_MEETINGS = 100_000


@attrs.frozen
class Stretch:
    """The part of a trace that counts, in epoch nanoseconds; *shift_ns* is added to its clock."""

    from_ns: int
    until_ns: int
    shift_ns: int = 0


Meeting = tuple[tuple[str, str], int]
"""A collective on one rank: its group and its name, and how long it took, ns."""


@attrs.frozen(eq=False)
class TraceFigures:
    """The data of one trace."""

    device_events: int
    host_events: int
    unlaunched: int
    graph_kernels: int
    temporal: Temporal | None
    idle: Idle | None
    kernels: dict[str, Total]
    operators: dict[str, Total]
    memory: tuple[MemoryPeak, ...]
    compile_s: float
    meetings: tuple[Meeting, ...]
    """In the order of time."""
    notes: tuple[str, ...]


def figures_of(path: Path, stretch: Stretch | None = None) -> TraceFigures:
    """Read the trace *path*, and keep the figures of *stretch*; None: of all of it.

    Raise `UnreadableError` if nothing of it can be read.
    """
    begin, end, notes = *_ALL, list[str]()
    if stretch is not None:
        epoch_ns = _epoch_ns(path) + stretch.shift_ns
        begin, end = stretch.from_ns - epoch_ns, stretch.until_ns - epoch_ns
    events = read_events(path, begin, end)
    found = chosen(events, begin, end)
    if stretch is not None and not len(found) and (events.kind != SYNC).any():
        notes.append("no device event is in the window, so its clock is wrong; nothing was cut off")
        begin, end = _ALL
        found = chosen(events, begin, end)
    notes += _notes(events, found, len(events.starts))
    is_any = bool(len(found))
    return TraceFigures(
        device_events=len(found),
        host_events=len(events.host_starts),
        unlaunched=found.unlaunched,
        graph_kernels=int(found.of_graph.sum()),
        temporal=temporal_of(found) if is_any else None,
        idle=idle_of(found) if is_any else None,
        kernels=kernels_of(events, found),
        operators=operators_of(events, begin, end),
        memory=tuple(peak for _, peak in sorted(events.memory.items())),
        compile_s=compile_ns(events, begin, end) / 1e9,
        meetings=tuple(_meetings(events, found, begin, end)),
        notes=tuple(notes),
    )


def _epoch_ns(path: Path) -> int:
    text = TraceText(path)
    with closing(text.batches(1 << 16)) as batches:
        next(batches, b"")
    return epoch_ns_of(text.head)


def _notes(events: Events, found: Chosen, read: int) -> Iterator[str]:
    yield from events.problems
    if events.dropped:
        yield f"events that cannot be read: {events.dropped} left out"
    if found.unlaunched:
        yield f"launched before the recording began: {found.unlaunched} of {read} device events"
    graphs = int(found.of_graph.sum())
    if graphs:
        yield f"idle before {graphs} kernels of CUDA graphs has no known cause"


def _meetings(events: Events, found: Chosen, begin: int, end: int) -> Iterator[Meeting]:
    """Yield the collectives: kernels of communication; without a device what the host noted."""
    if not len(found):
        for name, at, until in sorted(events.meetings, key=lambda one: one[1]):
            if _is_of_all(name) and begin <= at and until <= end:
                yield ("", name), until - at
        return
    names = list(events.names)
    chosen_ones = [int(at) for at in (found.kind == COMMUNICATION).nonzero()[0][:_MOST_MEETINGS]]
    for at in sorted(chosen_ones, key=lambda at: int(found.starts[at])):
        name, place = names[found.name[at]], int(found.where[at])
        if not _is_of_all(name):
            continue
        # As it was recorded: one that was cut off by the window would look short.
        took = int(events.ends[place] - events.starts[place])
        yield (events.groups.get(place, ""), name), took


def _is_of_all(name: Any) -> bool:
    """Whether a collective is one of all ranks of a group, not of two of them."""
    lowered = str(name).lower()
    return not any(word in lowered for word in ("sendrecv", "send", "recv"))
