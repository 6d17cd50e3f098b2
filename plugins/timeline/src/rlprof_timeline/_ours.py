"""The time that recording cost a run: starts, stops and exports as slices, marked steps.

Separate because it is about rlprof, not about training: without these slices, a stop looks like
slowness of the program, or of the ranks that wait for this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof_timeline._spans import Slice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_run import CaptureResult, Process

LANE, EXPORTS = "rlprof", "rlprof exports"
_LONGEST_S = 1e8


def of_captures(captures: Sequence[CaptureResult]) -> Iterator[Slice]:
    """Draw the duration and delay of start, stop and export of each capture.

    The slices of the lane `rlprof exports` cost the process nothing: a helper process exported.
    """
    for capture in captures:
        args = {"window": capture.window.id, "target": str(capture.target)}
        for lane, what, begin, end in _taken(capture):
            if begin < end:
                yield Slice(lane, f"rlprof: {capture.tool}.{what}", begin, end, args)


def _taken(capture: CaptureResult) -> Iterator[tuple[str, str, int, int]]:
    """Yield lane, name, begin and end in epoch ns."""
    opened, closed, exported = capture.opened_ns, capture.closed_ns, capture.exported_ns
    yield LANE, "start is late", opened - _ns(capture.late_start_s), opened
    if capture.started_ns is not None:
        yield LANE, "start", opened, capture.started_ns
    if closed is not None:
        stopping = closed - _ns(capture.stop_s)
        yield LANE, "stop is late", stopping - _ns(capture.late_stop_s), stopping
        yield LANE, "stop", stopping, closed
    if exported is not None:
        yield EXPORTS, "export", exported - _ns(capture.export_s), exported


def _ns(seconds: float | None) -> int:
    """Return nanoseconds; a damaged manifest may say anything."""
    return round(seconds * 1e9) if seconds is not None and 0 < seconds < _LONGEST_S else 0


@attrs.frozen
class Recordings:
    """The times at which a process was recorded, and the tools."""

    stretches: tuple[tuple[int, int, str], ...]
    """Begin and end in epoch ns; tool and window."""

    @classmethod
    def of(cls, captures: Sequence[CaptureResult], process: Process) -> Recordings:
        """Collect each capture that began, from before its start until after its stop."""
        last = process.clocks[-1].realtime_ns
        found = []
        for capture in captures:
            if capture.started_ns is None:
                continue
            end = capture.closed_ns or last
            found.append((capture.opened_ns, end, f"{capture.tool} {capture.window.id}"))
        return cls(tuple(found))

    def mark(self, item: Slice) -> Slice:
        """List what was recorded of a step; empty for other spans."""
        if item.lane != "steps":
            return item
        tools = [
            words
            for begin, end, words in self.stretches
            if begin < item.end_ns and item.start_ns < end
        ]
        if not tools:
            return item
        args: dict[str, Any] = {**item.args, "recorded": ", ".join(dict.fromkeys(tools))}
        return attrs.evolve(item, args=args)
