"""Place Kineto's relative times on the wall clock, and prove it with marks.

`ts` is relative to `baseTimeNanoseconds`, which stands behind the events until torch 2.6 and before
them from 2.7. The mark is a span the plugin records with the wall clock read on both sides of it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from rlprof_traces import tail_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Spans = Sequence[tuple[int, int]]

CLOCK_MARK = "rlprof.clock"

_BLOCK = 2 << 20
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b')
_MICROSECONDS = re.compile(r"(\d{1,18})(?:\.(\d{1,9}))?")
_EXACT = json.JSONDecoder(parse_int=str, parse_float=str)


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
    """Return start and duration in ns of all spans named `rlprof.clock`, by start.

    A pass of its own, because error_ns stands before the events; it only searches the name,
    0.5 ns a byte, and reads JSON around it.
    """
    name = f'"{CLOCK_MARK}"'.encode()
    spans: list[tuple[int, int]] = []
    with raw.open("rb") as file, raw.open("rb") as near:
        kept, start = b"", 0
        while block := file.read(_BLOCK):
            data = kept + block
            hit = data.find(name)
            while hit >= 0:
                first = max(0, start + hit - 4096)
                near.seek(first)
                spans += _span_around(near.read(8192).decode("latin-1"), start + hit - first)
                hit = data.find(name, hit + 1)
            kept = data[1 - len(name) :]
            start += len(data) - len(kept)
    return sorted(spans)


def _span_around(text: str, hit: int) -> list[tuple[int, int]]:
    """Return the mark in the innermost object around *hit* that has its name, if it is one."""
    opening = text.rfind("{", 0, hit)
    while opening >= 0:
        try:
            event, end = _EXACT.raw_decode(text, opening)
        except (ValueError, RecursionError):
            event, end = {}, 0
        if hit < end and event.get("name") == CLOCK_MARK and event.get("ph") == "X":
            start, length = map(_nanoseconds, (event.get("ts"), event.get("dur")))
            return [] if start is None or length is None else [(start, length)]
        opening = text.rfind("{", 0, opening)
    return []


def _nanoseconds(text: object) -> int | None:
    """Return *text*, microseconds with decimals, exactly: a float of epoch us is 0.25 us coarse."""
    found = _MICROSECONDS.fullmatch(text) if isinstance(text, str) else None
    return int(found[1]) * 1000 + int(f"{found[2] or ''}000"[:3]) if found else None


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
