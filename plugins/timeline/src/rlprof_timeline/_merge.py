"""Writes the traces of one group, one after another, into a part of the timeline.

A part is a gzip member, and the file is a sequence of them. So each group is read, moved and
compressed in a separate process (`_pool.py`), and only one batch of each is in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rlprof_timeline._clock import Clock, clock_of
from rlprof_timeline._events import moved
from rlprof_timeline._inplace import moved_in_place
from rlprof_timeline._place import Place
from rlprof_timeline._tracks import Tracks
from rlprof_traces import Packed, TraceText, UnreadableError, unescaped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlprof_timeline._source import Trace

_FEW = 1 << 15
"""ISA-L compresses poorly if its first input has less than 288 bytes."""


@attrs.frozen
class Group:
    """The traces that share tracks."""

    title: str
    first: int
    pid: int
    is_one: bool
    """See `Tracks` for all four."""
    prefix: int
    """That of the first trace; see `Place`."""
    traces: tuple[Trace, ...]


@attrs.define
class Moved:
    """The result for one trace."""

    events: int | None = 0
    """None: not read yet."""
    untimed: int = 0
    earliest_ns: int | None = None
    """Epoch nanoseconds."""
    meetings: tuple[tuple[str, int, int], ...] = ()
    """Collectives and barriers, when they ended, in epoch nanoseconds, and their durations."""
    clock: Clock | None = None
    problems: list[str] = attrs.field(factory=list)
    left_out: str = ""
    """Why it is not shown."""


@attrs.frozen
class Part:
    """A group on the timeline."""

    path: Path
    names: tuple[tuple[str, int, int, str], ...]
    """The names of its tracks; see `Tracks`."""
    items: tuple[Moved, ...]


@attrs.frozen
class Stretch:
    """The time range that is shown, in epoch nanoseconds; `ts` 0 is *zero_ns*."""

    zero_ns: int
    from_ns: int | None = None
    until_ns: int | None = None


def move(group: Group, stretch: Stretch, path: Path) -> Part:
    """Move the traces of one group into the part *path*."""
    tracks = Tracks(group.title, group.first, group.pid, group.is_one)
    with path.open("wb") as file, Packed(file, fast=True) as stream:
        items = [
            _move_one(trace, prefix, stretch, tracks, stream.write)
            for prefix, trace in enumerate(group.traces, group.prefix)
        ]
    return Part(path, tuple(tracks.names()), tuple(items))


def _move_one(
    trace: Trace,
    prefix: int,
    stretch: Stretch,
    tracks: Tracks,
    write: Callable[[bytes | memoryview], object],
) -> Moved:
    done = Moved(clock=trace.clock)
    text = TraceText(trace.path)
    place, zero = None, stretch.zero_ns
    try:
        for batch in text.batches():
            if place is None:
                done.clock = done.clock or clock_of(text.head)
                shift_ns = done.clock.epoch_ns + trace.shift_ns - zero
                place = Place(shift_ns, tracks, prefix, stretch.from_ns, stretch.until_ns, zero)
            if events := moved_either(batch, place):
                if len(events) < _FEW:
                    events = b",\n" + events
                else:
                    write(b",\n")
                write(events)
        done.clock = done.clock or clock_of(text.head)
    except UnreadableError as exc:
        done.problems.append(str(exc))
    except MemoryError:
        done.problems.append("is larger than the memory of this machine")
    done.problems += text.problems
    if place is not None:
        done.events, done.untimed = place.events, place.untimed
        done.meetings = tuple((name, end + zero, dur) for name, end, dur in place.meetings)
        if place.earliest_ns is not None:
            done.earliest_ns = place.earliest_ns + zero
    if text.dropped:
        done.problems.append(f"events that cannot be read: {text.dropped} dropped")
    if done.problems and not done.events:
        done.left_out = done.problems[0]
    return done


def moved_either(batch: bytes, place: Place) -> bytes | memoryview:
    """Return the events of *batch* for the timeline, by the fast method if possible.

    They have no escapes, which Perfetto cannot read; see `rlprof_traces`.
    """
    if b"\\" in batch:
        batch = unescaped(batch)
    in_place = moved_in_place(batch, place)
    return moved(batch, place) if in_place is None else in_place
