"""Place Kineto's relative times on the wall clock, and prove it with marks.

`ts` is relative to `baseTimeNanoseconds`, which stands behind the events until torch 2.6 and before
them from 2.7. The mark is a span the plugin records with the wall clock read on both sides of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlprof_traces import tail_of
from rlprof_traces.marks import OVERLAP, marks_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Spans = Sequence[tuple[int, int]]

_BLOCK = 2 << 20
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b')


def base_in(raw: Path, head: Mapping[str, Any]) -> int | None:
    """Find the base: before the events, or behind them, where torch 2.4 to 2.6 write it."""
    for members in (head, tail_of(raw)):
        base = members.get("baseTimeNanoseconds")
        if type(base) is int and base >= 0:
            return base
    with raw.open("rb") as file:  # what stands before the events may be no JSON
        found = _BASE.search(file.read(_BLOCK).partition(b'"traceEvents"')[0])
    return int(found[1]) if found else None


def mark_spans(raw: Path) -> list[tuple[int, int]]:
    """Return start and duration in ns of the marks, by start.

    A pass of its own, because error_ns stands before the events.
    """
    spans: set[tuple[int, int]] = set()
    kept = b""
    with raw.open("rb") as file:
        while block := file.read(_BLOCK):
            text = kept + block
            spans |= marks_in(text)
            kept = text[-OVERLAP:]
    return sorted(spans)


def place_clock(base: int | None, spans: Spans, marks: Spans) -> tuple[int | None, int | None, str]:
    """Return epoch_ns, error_ns and in words how they were found."""
    if base is not None:
        epoch, how = base, "baseTimeNanoseconds plus ts"
    elif spans:
        epoch, how = marks[0][0] - spans[0][0], "ts set by the first mark, its base is missing"
    else:
        return None, None, "unknown, the base of ts is missing and there is no mark"
    if not spans:
        return epoch, None, f"{how}; unchecked, no mark was {'found' if marks else 'given'}"
    if len(spans) == len(marks):
        errors = [_error(epoch, span, mark) for span, mark in zip(spans, marks, strict=True)]
    else:  # one fell outside the recording: each span by the mark it fits best
        errors = [min(_error(epoch, span, mark) for mark in marks) for span in spans]
    return epoch, max(errors), f"{how}; checked by {len(spans)} of {len(marks)} marks"


def _error(epoch: int, span: tuple[int, int], mark: tuple[int, int]) -> int:
    """Return how far *span* may lie from the truth: outside its bracket plus the bracket."""
    begin = epoch + span[0]
    outside = max(mark[0] - begin, begin + span[1] - mark[1], 0)
    return outside + mark[1] - mark[0]
