"""The place of the events of one trace on the timeline, and what was seen of them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import attrs

from rlprof_timeline._clock import FIRST_NS, LAST_NS
from rlprof_timeline._tracks import short
from rlprof_traces import encode

if TYPE_CHECKING:
    from rlprof_timeline._tracks import Tracks

FIRST_WORDS = ("nccl", "gloo", "barr")
"""The first characters of the names that `met` takes."""
_LARGEST_ID = 10**13
"""With a prefix it has less than 63 bits."""
_MEETING = re.compile(
    r"barrier$|gloo:(?:all|barrier|reduce_scatter|_all|_reduce_scatter)|"
    r"nccl(?:Dev)?Kernel_(?:All|ReduceScatter)"
)
"""Slices that end on all ranks at once. `nccl:all_reduce` is a launch, which ends long before;
HCCL was not examined yet."""
_GROUP = re.compile(rb'"Process Group (?:Name|Ranks)":\s*"?\[?([^"\]\n}]{1,200})')
"""The group of a collective, as far as Kineto wrote it."""
_BOOKKEEPING = {
    "Spans": "PyTorch Profiler",
    "Traces": "Iteration Start: ",
    "": "Record Window End",
}
"""The processes in which Kineto notes that it recorded, and how the names of its notes begin."""
_MEETINGS = 2000
_OF_A_NAME = 128
"""Ranks are compared name by name, so each must keep the same number of each name."""
_OF_ALL_GROUPS = 1024
"""At most this many of a name are examined, in all groups."""
_NAMES = 4096
_LONGEST_NS = 86_400_000_000_000


@attrs.define(eq=False)
class Place:
    """The place of the events of one trace, and what was seen of them."""

    shift_ns: int
    """The time to add to their times."""
    tracks: Tracks
    prefix: int
    """Six digits, the first of them 1 to 7, before every id, so that no two traces share an id."""
    from_ns: int | None = None
    until_ns: int | None = None
    """Epoch nanoseconds: events outside are left out."""
    zero_ns: int = 0
    """Epoch nanoseconds of the timeline's `ts` 0."""
    events: int = 0
    untimed: int = 0
    """Entries that are not events, or have no time: they have no place."""
    earliest_ns: int | None = None
    meetings: list[tuple[str, int, int]] = attrs.field(factory=list)
    """Slices that end on all ranks at once: their ends and durations; the first of them."""
    _met: Counter[str] = attrs.field(factory=Counter)
    _passed_over: set[str] = attrs.field(factory=set)
    names: dict[str, int] = attrs.field(factory=dict)
    """Ids that are not numbers, by their text."""

    def saw(self, at_ns: int) -> None:
        """Remember the earliest time."""
        if self.earliest_ns is None or at_ns < self.earliest_ns:
            self.earliest_ns = at_ns

    def looks_for(self, name: str) -> bool:
        """Whether `met` takes a slice of this name."""
        if name in self._passed_over:
            return False
        if len(self.meetings) < _MEETINGS and _MEETING.match(name):
            return True
        if len(self._passed_over) < _NAMES:
            self._passed_over.add(name)
        return False

    def met(self, name: str, end_ns: int, dur_ns: int, args: bytes) -> None:
        """Remember a collective or a barrier; *args* are its arguments as text."""
        if not self.looks_for(name) or not 0 <= dur_ns <= _LONGEST_NS:
            return
        group = b" ".join(_GROUP.findall(args)).decode("utf-8", "replace")
        whole = f"{name} {group}".rstrip()
        self._met[name] += 1
        self._met[whole] += whole != name
        if self._met[name] == _OF_ALL_GROUPS:
            self._passed_over.add(name)
        if self._met[whole] <= _OF_A_NAME:
            self.meetings.append((whole, end_ns, dur_ns))

    def is_inside(self, at_ns: int, dur_ns: int) -> bool:
        """Whether an event is shown."""
        at_ns += self.zero_ns
        if self.from_ns is not None and at_ns + dur_ns < self.from_ns:
            return False
        return self.until_ns is None or at_ns < self.until_ns

    def id(self, old: object) -> int:
        """Return the number of an id."""
        if type(old) is int and 0 <= old < _LARGEST_ID:
            return int(f"{self.prefix}{old}")
        name = short(f'"{old}' if isinstance(old, str) else encode(old).decode())
        nth = self.names.setdefault(name, len(self.names))
        return int(f"8{self.prefix}{nth}")  # begins like no prefix

    def is_meant(self, at_ns: int) -> bool:
        """Whether a time is possible."""
        return FIRST_NS <= at_ns + self.zero_ns <= LAST_NS

    @property
    def is_cut(self) -> bool:
        """Whether only a time range is shown."""
        return self.from_ns is not None or self.until_ns is not None


def is_bookkeeping(pid: object, name: object) -> bool:
    """Whether an event is a note of Kineto about itself."""
    if type(pid) is not str or pid not in _BOOKKEEPING:
        return False
    return isinstance(name, str) and name.startswith(_BOOKKEEPING[pid])
