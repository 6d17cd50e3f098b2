"""Traces of one group, one after another, into a part of the timeline; many groups at a time.

A part is a gzip member of its own: members stand one behind another in the file, so that groups
are read, moved and compressed each in a process of its own, and no more than a window of each is
in memory.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

import attrs

from rlprof_timeline._clock import Clock, clock_of
from rlprof_timeline._events import Place, moved
from rlprof_timeline._gzip import packed
from rlprof_timeline._inplace import moved_in_place
from rlprof_timeline._text import TraceText, UnreadableError
from rlprof_timeline._tracks import Tracks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rlprof_timeline._tracks import Track

_SMALL = 8 << 20
"""Bytes of files that are not worth a second process."""


@attrs.frozen
class Item:
    """A trace to be laid on the timeline."""

    path: Path
    prefix: int
    """See `Place`."""
    shift_ns: int = 0
    """What to add to its times, besides its own epoch."""
    clock: Clock | None = None
    """Its clock, where it is not in its own `rlprof` object."""


@attrs.frozen
class Group:
    """The traces that share tracks."""

    first: int
    """The number of the first of its processes."""
    items: tuple[Item, ...]


@attrs.define
class Moved:
    """What became of one trace."""

    events: int = 0
    untimed: int = 0
    earliest_ns: int | None = None
    """Epoch nanoseconds."""
    clock: Clock | None = None
    bytes: int = 0
    problems: list[str] = attrs.field(factory=list)
    left_out: str = ""
    """Why nothing of it is shown."""


@attrs.frozen
class Part:
    """A group on the timeline."""

    path: Path
    tracks: dict[int | str, Track]
    items: tuple[Moved, ...]


@attrs.frozen
class Stretch:
    """What stretch of time is shown, in epoch nanoseconds; `ts` 0 is *zero_ns*."""

    zero_ns: int
    from_ns: int | None = None
    until_ns: int | None = None


def move_all(
    groups: Sequence[Group], stretch: Stretch, folder: Path, tell: Callable[[Part], None]
) -> list[Part]:
    """Move all groups into parts in *folder*, on all cores; *tell* of each that is done."""
    jobs = [(group, stretch, folder / f"{nth}.json.gz") for nth, group in enumerate(groups)]
    workers = min(len(jobs), _cores())
    if workers < 2 or sum(map(_size, groups)) < _SMALL:
        return [_told(move(*job), tell) for job in jobs]
    # A copy of this process has all modules; with other threads in it, it might have their locks.
    is_alone = threading.active_count() == 1 and "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if is_alone else "spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_begin)
    try:
        # The largest first: else the last one keeps one core busy and the others wait.
        order = sorted(range(len(jobs)), key=lambda nth: -_size(groups[nth]))
        futures = {nth: pool.submit(move, *jobs[nth]) for nth in order}
        return [_told(futures[nth].result(), tell) for nth in range(len(jobs))]
    except BrokenProcessPool:  # the system took one of them for its memory
        raise MemoryError("a process that read traces was killed; export less: --step") from None
    finally:
        processes = list((pool._processes or {}).values())  # noqa: SLF001 -- Ctrl-C ends them now
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


def move(group: Group, stretch: Stretch, path: Path) -> Part:
    """Move the traces of one group into the part *path*."""
    tracks = Tracks(group.first)
    was_collecting = gc.isenabled()
    gc.disable()  # a hundred thousand events a window, none of them in a cycle
    try:
        with path.open("wb") as file, packed(file) as stream:
            items = [_move_one(item, stretch, tracks, stream.write) for item in group.items]
    finally:
        if was_collecting:
            gc.enable()
    return Part(path, tracks.told(), tuple(items))


def _move_one(
    item: Item, stretch: Stretch, tracks: Tracks, write: Callable[[bytes], object]
) -> Moved:
    done = Moved(clock=item.clock)
    text = TraceText(item.path)
    place = None
    try:
        for window in text.windows():
            if place is None:
                done.clock = done.clock or clock_of(text.head)
                place = _place(item, done.clock, stretch, tracks)
            events = moved_in_place(window, place)
            if events is None:
                events = moved(window, place)
            if events:
                write(b",\n" + events)
        done.clock = done.clock or clock_of(text.head)
    except UnreadableError as exc:
        done.problems.append(str(exc))
    except MemoryError:
        done.problems.append("is larger than the memory of this machine")
    done.bytes = text.bytes
    done.problems += text.problems
    if place is not None:
        done.events, done.untimed = place.events, place.untimed
        if place.earliest_ns is not None:
            done.earliest_ns = place.earliest_ns + stretch.zero_ns
    if text.dropped:
        done.problems.append(f"{text.dropped} events that cannot be read dropped")
    if tracks.is_full:
        done.problems.append("has too many threads: those beyond share a track")
    if done.problems and not done.events:
        done.left_out = done.problems[0]
    return done


def _place(item: Item, clock: Clock, stretch: Stretch, tracks: Tracks) -> Place:
    return Place(
        clock.epoch_ns + item.shift_ns - stretch.zero_ns,
        tracks,
        item.prefix,
        None if stretch.from_ns is None else stretch.from_ns - stretch.zero_ns,
        None if stretch.until_ns is None else stretch.until_ns - stretch.zero_ns,
        stretch.zero_ns,
    )


def _told(part: Part, tell: Callable[[Part], None]) -> Part:
    tell(part)
    return part


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever waits for us
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _size(group: Group) -> int:
    size = 0
    for item in group.items:
        try:
            size += item.path.stat().st_size
        except OSError:
            continue
    return size


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
