"""Writes the traces of one group, one after another, into a part of the timeline.

A part is a gzip member, and the file is a sequence of them. So each group is read, moved and
compressed in a separate process (`_pool.py`), and only one batch of each is in memory.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import attrs

from rlprof_timeline._clock import Clock, clock_of
from rlprof_timeline._events import moved
from rlprof_timeline._inplace import moved_in_place
from rlprof_timeline._place import Place
from rlprof_timeline._tracks import Tracks
from rlprof_traces import Packed, TraceText, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FEW = 1 << 15
"""ISA-L compresses poorly if its first input has less than 288 bytes."""


@attrs.frozen
class Item:
    """A trace to put on the timeline."""

    path: Path
    prefix: int
    """See `Place`."""
    shift_ns: int = 0
    """The time to add to its times, besides its epoch."""
    clock: Clock | None = None
    """Its clock, if that is not in its `rlprof` object."""

    def size(self) -> int:
        """Return the size of the file on disk."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


@attrs.frozen
class Group:
    """The traces that share tracks."""

    title: str
    first: int
    pid: int
    is_one: bool
    """See `Tracks` for all four."""
    items: tuple[Item, ...]


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


def move(group: Group, stretch: Stretch, path: Path, tell: Callable[[int, int], object]) -> Part:
    """Move the traces of one group into the part *path*; call *tell* with files and bytes done."""
    tracks = Tracks(group.title, group.first, group.pid, group.is_one)
    was_collecting = gc.isenabled()
    gc.disable()  # a hundred thousand events a batch, none of them in a cycle
    try:
        with path.open("wb") as file, Packed(file, fast=True) as stream:
            items = [_move_one(item, stretch, tracks, stream.write, tell) for item in group.items]
    finally:
        if was_collecting:
            gc.enable()
    return Part(path, tuple(tracks.names()), tuple(items))


def _move_one(
    item: Item,
    stretch: Stretch,
    tracks: Tracks,
    write: Callable[[bytes | memoryview], object],
    tell: Callable[[int, int], object],
) -> Moved:
    done = Moved(clock=item.clock)
    text = TraceText(item.path)
    place, told = None, 0
    try:
        for batch in text.batches():
            if place is None:
                done.clock = done.clock or clock_of(text.head)
                place = _place(item, done.clock, stretch, tracks)
            if events := moved_either(batch, place):
                if len(events) < _FEW:
                    events = b",\n" + events
                else:
                    write(b",\n")
                write(events)
            tell(0, text.read - told)
            told = text.read
        done.clock = done.clock or clock_of(text.head)
    except UnreadableError as exc:
        done.problems.append(str(exc))
    except MemoryError:
        done.problems.append("is larger than the memory of this machine")
    tell(1, item.size() - told)
    done.problems += text.problems
    if place is not None:
        done.events, done.untimed = place.events, place.untimed
        zero = stretch.zero_ns
        done.meetings = tuple((name, end + zero, dur) for name, end, dur in place.meetings)
        if place.earliest_ns is not None:
            done.earliest_ns = place.earliest_ns + zero
    if text.dropped:
        done.problems.append(f"events that cannot be read: {text.dropped} dropped")
    if done.problems and not done.events:
        done.left_out = done.problems[0]
    return done


def moved_either(batch: bytes, place: Place) -> bytes | memoryview:
    """Return the events of *batch* for the timeline, by the fast method if possible."""
    in_place = moved_in_place(batch, place)
    return moved(batch, place) if in_place is None else in_place


def _place(item: Item, clock: Clock, stretch: Stretch, tracks: Tracks) -> Place:
    return Place(
        clock.epoch_ns + item.shift_ns - stretch.zero_ns,
        tracks,
        item.prefix,
        None if stretch.from_ns is None else stretch.from_ns - stretch.zero_ns,
        None if stretch.until_ns is None else stretch.until_ns - stretch.zero_ns,
        stretch.zero_ns,
    )
