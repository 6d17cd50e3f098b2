"""The time that recording cost a run: starts, stops and exports as slices, marked steps.

Separate because it is about rlprof, not about training: without these slices, a stop looks like
slowness of the program, or of the ranks that wait for this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rlprof_timeline._spans import Slice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlprof_run import CaptureResult

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


def marked(
    slices: Iterable[Slice], captures: Iterable[CaptureResult], last_ns: int
) -> Iterator[Slice]:
    """Mark each step with what was recorded of it, and by which tools.

    A capture lasts from before its start until after its stop, or until *last_ns*.
    """
    stretches = [
        (one.opened_ns, one.closed_ns or last_ns, f"{one.tool} {one.window.id}")
        for one in captures
        if one.started_ns is not None
    ]
    for item in slices:
        start, end = (item.start_ns, item.end_ns) if item.lane == "steps" else (0, 0)
        tools = [words for begin, over, words in stretches if begin < end and start < over]
        args = {**item.args, "recorded": ", ".join(dict.fromkeys(tools))}
        yield attrs.evolve(item, args=args) if tools else item
