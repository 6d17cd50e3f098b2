"""What rlprof itself wrote down, spans and windows, as slices on rows where none is lost.

Separate because of the rows: a viewer drops the second of two slices on one row that overlap
without nesting, and spans of asyncio tasks and threads do just that.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import clock_at, unbroken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlprof.rundir import CaptureResult, Process, Span

LANES = ("steps", "phases", "windows", "spans")
"""From top to bottom; each is as many rows as it needs."""


@attrs.frozen
class Slice:
    """A named stretch of time, to be drawn."""

    lane: str
    name: str
    start_ns: int
    end_ns: int
    args: Mapping[str, Any]
    id: int | None = None
    parent: int | None = None
    """Below it there is room on its row."""


def of_span(span: Span) -> Slice:
    """Draw a span; an attribute that is called like a field of ours gets a longer name."""
    args = {"step": span.step, "occurrence": span.occurrence, "thread": span.thread}
    for key, value in span.attributes.items():
        args[f"{key} (attribute)" if key in args else key] = value
    lane = {"step": "steps", "phase": "phases"}.get(span.kind, "spans")
    return Slice(lane, span.name, span.start_ns, span.end_ns, args, span.id, span.parent)


def of_windows(
    captures: Iterable[CaptureResult], process: Process, left_out: Mapping[str, str]
) -> Iterator[Slice]:
    """Draw the windows that no trace shows, and those that left files to be opened elsewhere."""
    clocks, _ = unbroken(process.clocks)
    for capture in captures:
        files = [artifact.path for artifact in capture.artifacts if artifact.kind == "files"]
        missing = [left_out[item.path] for item in capture.artifacts if item.path in left_out]
        is_good = capture.state in ("whole", "partial")
        if is_good and not files and not missing:
            continue
        name = f"{capture.tool} {capture.window.id}"
        if missing or not is_good:
            name = f"{'left out' if is_good else capture.state}: {name}"
        args: dict[str, Any] = {"state": capture.state}
        args |= {"file" if n == 1 else f"file {n}": path for n, path in enumerate(files, 1)}
        if capture.notes or missing:
            args["notes"] = "; ".join([*capture.notes, *missing])
        # One that was never closed ends with the last sign of life.
        end = capture.closed_ns or process.clocks[-1].monotonic_ns
        start, _ = clock_at(clocks, capture.opened_ns)
        yield Slice("windows", name, start, start + max(0, end - capture.opened_ns), args)


def in_rows(slices: Iterable[Slice]) -> Iterator[tuple[int, Slice]]:
    """Say on which row each slice stands: under its parent if it fits, else the first free one.

    Only parents have slices under them: what runs at the same time by chance stands beside.
    """
    rows: list[list[Slice]] = []  # of each: the open slices, outermost first
    row_of: dict[int | None, int] = {}
    taken: list[tuple[int, int]] = []  # until when, row
    free: list[int] = []
    for item in sorted(slices, key=lambda s: (s.start_ns, -s.end_ns, s.id or 0)):
        while taken and taken[0][0] <= item.start_ns:
            heappush(free, heappop(taken)[1])
        row = None if item.parent is None else row_of.get(item.parent)
        if row is None or not _fits(rows[row], item):
            if not free:
                heappush(free, len(rows))
                rows.append([])
            row = heappop(free)
            rows[row] = []
            heappush(taken, (item.end_ns, row))
        rows[row].append(item)
        row_of[item.id] = row
        yield row, item


def _fits(row: list[Slice], item: Slice) -> bool:
    while row and row[-1].end_ns <= item.start_ns:
        row.pop()
    return bool(row) and row[-1].id == item.parent and item.end_ns <= row[-1].end_ns
