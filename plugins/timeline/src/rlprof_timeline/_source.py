"""What stands on a timeline, before anybody has read a trace: sources, and the traces of each."""

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
    """A trace file, and what is known of it."""

    path: Path
    shown: str
    """The path as it is told."""
    about: Mapping[str, Any]
    """What the timeline's own object says of it, besides what reading it tells."""
    problems: tuple[str, ...] = ()
    shift_ns: int = 0
    """What to add to its times, besides its own epoch."""
    clock: Clock | None = None
    """Its clock, where it is not in its own `rlprof` object."""
    together: object = None
    """Those that have the same recorded the same window, or stand in one folder."""
    is_of_known_window: bool = True
    """Else those that stand together may be of several."""
    host: str = ""
    """Whose clock it has: a key of `Plan.hosts`."""


@attrs.frozen
class TraceGroup:
    """The traces that share tracks: those of one target and tool."""

    title: str
    """What stands before the name of each of its processes."""
    traces: tuple[Trace, ...]


@attrs.frozen(eq=False)
class Source:
    """A process of the run, or a file."""

    title: str
    is_driver: bool
    starts: tuple[int, ...]
    """When its spans and windows began, in epoch ns."""
    groups: tuple[TraceGroup, ...]
    slices: Callable[[Mapping[str, str]], Sequence[Slice]] = lambda _: ()
    """Its spans and windows; told which files are left out, and why."""
    counters: Callable[[], Iterator[Sample]] = lambda: iter(())
    """What it counted, by itself and of its engines."""
    host: str = ""
    """Whose clock they have: a key of `Plan.hosts`."""
    target: str = ""
    """Whose process it is; counters of another are an engine's."""
    about: tuple[Mapping[str, Any], ...] = ()
    """What the timeline's own object says of its spans and counters."""


@attrs.frozen(eq=False)
class Plan:
    """All of a timeline."""

    about: Mapping[str, Any]
    """What the timeline's own object says of the whole."""
    sources: tuple[Source, ...]
    left_out: Mapping[str, str]
    """What cannot be read already now, and why."""
    opened_ns: int
    """The time where there is nothing."""
    problems: tuple[str, ...] = ()
    from_ns: int | None = None
    until_ns: int | None = None

    hosts: Mapping[str, str] = attrs.field(factory=dict)
    """What each host is called; the first one's clock is that of the timeline."""
    knows_hosts: bool = True
    """Whether it is known which trace is of which host; else each is taken for a host."""
    measured: frozenset[str] = frozenset()
    """Hosts whose clock the driver of a fleet has measured; its offset is taken out already."""

    def traces(self) -> Iterator[Trace]:
        """Go through all traces, in their order."""
        for source in self.sources:
            for group in source.groups:
                yield from group.traces
