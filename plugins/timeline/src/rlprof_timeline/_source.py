"""The plan of a timeline, before any trace is read: sources, and the traces of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rlprof_run import Sample
    from rlprof_timeline._clock import Clock
    from rlprof_timeline._spans import Slice


@attrs.frozen
class Trace:
    """A trace file and its properties."""

    path: Path
    shown: str
    """The path as it is printed."""
    about: Mapping[str, Any]
    """Its values in the `rlprof` object of the timeline, besides those found by reading it."""
    problems: tuple[str, ...] = ()
    shift_ns: int = 0
    """The time to add to its times, besides its epoch."""
    clock: Clock | None = None
    """Its clock, if that is not in its `rlprof` object."""
    together: object = None
    """Traces with the same value recorded the same window, or are in one folder."""
    is_of_known_window: bool = True
    """Else traces of one folder may belong to several windows."""
    host: str = ""
    """The host whose clock it has: a key of `Plan.hosts`."""


@attrs.frozen
class TraceGroup:
    """The traces that share tracks: those of one target and tool."""

    title: str
    """The prefix of the name of each of its tracks."""
    traces: tuple[Trace, ...]


@attrs.frozen(eq=False)
class Source:
    """A process of the run, an engine that a process drives, or a file."""

    title: str
    """The name of the one process that holds its tracks; empty: those of its traces hold them."""
    is_driver: bool
    starts: tuple[int, ...]
    """When its spans and windows began, in epoch ns."""
    groups: tuple[TraceGroup, ...]
    slices: Callable[[Mapping[str, str]], Sequence[Slice]] = lambda _: ()
    """Its spans and windows; it gets the files that are left out, and why."""
    counters: Callable[[], Iterator[Sample]] = lambda: iter(())
    """Its counters, and those of its engines."""
    host: str = ""
    """The host whose clock they have: a key of `Plan.hosts`."""
    target: str = ""
    """Its target; counters of other targets are drawn on the processes of those."""
    about: tuple[Mapping[str, Any], ...] = ()
    """Its values in the `rlprof` object of the timeline: spans and counters."""


@attrs.frozen(eq=False)
class Plan:
    """A whole timeline."""

    about: Mapping[str, Any]
    """The values of the whole in the `rlprof` object of the timeline."""
    sources: tuple[Source, ...]
    left_out: Mapping[str, str]
    """The files already known to be unreadable, and why."""
    opened_ns: int
    """The start time if there is nothing to show."""
    problems: tuple[str, ...] = ()
    from_ns: int | None = None
    until_ns: int | None = None

    hosts: Mapping[str, str] = attrs.field(factory=dict)
    """Host → its name; the clock of the first host is that of the timeline."""
    knows_hosts: bool = True
    """Whether the host of each trace is known; else each trace counts as a host."""
    measured: frozenset[str] = frozenset()
    """Hosts whose clock the driver of a fleet measured; the offset is subtracted already."""

    def traces(self) -> Iterator[Trace]:
        """Yield all traces in order."""
        for source in self.sources:
            for group in source.groups:
                yield from group.traces
