"""The clock of a trace: the epoch of its `ts` 0, and the error of that.

A trace of rlprof has both in its `rlprof` object. In other traces, the layout of Kineto tells: up
to torch 2.3, `ts` is the epoch itself; later versions count from a base in the file, at its end
(2024) or before the events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof_traces import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST_NS, LAST_NS = -(10**18), 4 * 10**18
"""From 1938 to 2096: no real clock is outside, and the range fits the 63 bits of a viewer."""
_EPOCH_US = 10**14
"""A time from 1973 on is an epoch time; no host has that uptime."""


@attrs.frozen
class Clock:
    """The clock of one trace."""

    epoch_ns: int
    error_ns: int | None
    words: str


def clock_of(head: Mapping[str, Any]) -> Clock:
    """Read the clock that rlprof wrote into a trace."""
    header = head.get("rlprof")
    if not isinstance(header, dict):
        raise UnreadableError("has no rlprof object, so its clock is unknown")
    epoch = header.get("epoch_ns")
    if type(epoch) is not int:
        raise UnreadableError("its rlprof object has no epoch_ns")
    if abs(epoch) >= LAST_NS:
        raise UnreadableError("its clock is centuries off")
    error, words = header.get("error_ns"), header.get("clock")
    is_error = type(error) is int and 0 <= error < LAST_NS
    return Clock(epoch, error if is_error else None, words if isinstance(words, str) else "")


def clock_of_others(members: Mapping[str, Any], first_us: float | None) -> Clock | None:
    """Guess the clock of a trace of another profiler; None: its times have no date."""
    if isinstance(members.get("rlprof"), dict):
        clock = clock_of(members)
        return attrs.evolve(clock, words=clock.words or "that of rlprof")
    base = members.get("baseTimeNanoseconds")
    if type(base) is int and 0 < base < LAST_NS:
        return Clock(base, None, "baseTimeNanoseconds of Kineto")
    if first_us is not None and first_us > _EPOCH_US:
        return Clock(0, None, "epoch microseconds")
    return None
