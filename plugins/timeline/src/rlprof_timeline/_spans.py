"""The spans and windows of rlprof as slices, and the time that recording cost.

Without slices of starts, stops and exports, a stop looks like slowness of the program, or of the
ranks that wait for this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlprof_run import CaptureResult, Process, Span


LANE, EXPORTS = "rlprof", "rlprof exports"
_LONGEST_S = 1e8


@attrs.frozen
class Slice:
    """A named stretch of time to draw."""

    lane: str
    name: str
    start_ns: int
    end_ns: int
    args: Mapping[str, Any]
    id: int | None = None
    parent: int | None = None
    """Its row has room below it."""
    trajectory: str | None = None
    """The trajectory it belongs to, in words."""


def of_span(span: Span) -> Slice:
    """Draw a span; an attribute with the name of one of our fields gets a longer name."""
    args = {"step": span.step, "occurrence": span.occurrence, "thread": span.thread}
    for key, value in span.attributes.items():
        args[f"{key} (attribute)" if key in args else key] = value
    lane = {"step": "steps", "phase": "phases"}.get(span.kind, "spans")
    name, trajectory = span.name, None
    if lane == "spans" and "trajectory" in span.attributes:
        trajectory = str(span.attributes["trajectory"])
        if name == "trajectory":
            name = f"trajectory {trajectory}"
        elif name == "tool_call" and span.attributes.get("tool"):
            name = f"tool_call {span.attributes['tool']}"  # as `rlprof why` calls it
    times = span.start_ns, span.end_ns
    return Slice(lane, name, *times, args, span.id, span.parent, trajectory)


def of_windows(
    captures: Iterable[CaptureResult], process: Process, left_out: Mapping[str, str]
) -> Iterator[Slice]:
    """Draw the windows that no trace shows, and those with files for other viewers.

    In a part of a run without captures, these are all windows.
    """
    for capture in captures:
        files = [artifact.path for artifact in capture.artifacts if artifact.kind == "files"]
        missing = [left_out[item.path] for item in capture.artifacts if item.path in left_out]
        is_good = capture.state in ("whole", "partial")
        if is_good and capture.artifacts and not files and not missing:
            continue
        name = f"{capture.tool} {capture.window.id}"
        if missing or not is_good:
            name = f"{'left out' if is_good else capture.state}: {name}"
        args: dict[str, Any] = {"state": capture.state}
        args |= {"file" if n == 1 else f"file {n}": path for n, path in enumerate(files, 1)}
        if capture.notes or missing:
            args["notes"] = "; ".join([*capture.notes, *missing])
        # A window that was never closed ends with the last sign of life.
        start, end = capture.opened_ns, capture.closed_ns or process.clocks[-1].realtime_ns
        yield Slice("windows", name, start, max(start, end), args)


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
