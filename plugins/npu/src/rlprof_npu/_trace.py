"""Stream the library's `trace_view.json` into a chrome-trace that keeps the trace contract.

The library writes a bare list, with `ts` as text: microseconds since 1970 with three decimals. In
a float those are 0.25 us coarse, so they are read as whole nanoseconds and written relative to the
first. Where they lie on the wall clock is for the marks to say: torch_npu 2.13 reads a clock
that is never slewed and adds the offset of one that is, 0.25 s off on a host up for eight hours.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_npu._raw import CLOCK_MARK
from rlprof_traces import TraceText, UnreadableError, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_BLOCK = 1 << 20
_OVERLAP = 4096
_AT_ONCE = 2000
_EARLIEST_NS = 10**17  # 1973; before that it is no time of the wall clock

_TS = re.compile(r'"ts":\s*"?(\d{1,19})(?:\.(\d{1,9}))?')
_MARK = re.compile(
    rf'"name":\s*"{re.escape(CLOCK_MARK)}"[^{{}}]*?"ts":\s*"?(\d{{1,19}})(?:\.(\d{{1,9}}))?"?'
    r'[^{}]*?"dur":\s*"?(\d{1,18})(?:\.(\d{1,9}))?'
)
_TIME = re.compile(r"(\d{1,19})(?:\.(\d{1,9}))?")


@attrs.frozen
class Finished:
    """What `finish` wrote, and what it found on the way."""

    events: int
    dropped: int
    """Entries that are no events."""
    device_events: int
    truncated: bool
    """The list has no end: the analysis failed while it wrote."""
    text_size: int


def finish(
    raw: Path, out: Path, *, header: Mapping[str, object], marks: Sequence[Sequence[int]]
) -> Finished:
    """Write the trace *raw* to *out*, gzipped; *out* is whole or not there.

    Its first key `rlprof` holds *header* and the clock: *marks* are the `time.time_ns()` read
    before and after each span called `rlprof.clock`. Raise ValueError when *raw* holds no list.
    """
    first, spans = _look(raw)
    moved, error, how = place_clock(spans, marks)
    base = first or 0
    clock = {"epoch_ns": base + moved, "error_ns": error, "clock": how}
    return _Pass(raw, base).write(out, {**header, **clock})


def _look(raw: Path) -> tuple[int | None, list[tuple[int, int]]]:
    """Return the earliest time in *raw*, in whole microseconds, and the spans that mark the clock.

    A pass of its own: both stand before the events.
    """
    first: int | None = None
    spans: set[tuple[int, int]] = set()
    with raw.open(encoding="utf-8", errors="replace") as file:
        kept = ""
        while block := file.read(_BLOCK):
            text = kept + block
            for whole, part in _TS.findall(text):
                at = _nanoseconds(whole, part)
                if at >= _EARLIEST_NS and (first is None or at < first):
                    first = at
            for found in _MARK.finditer(text):
                spans.add((_nanoseconds(found[1], found[2]), _nanoseconds(found[3], found[4])))
            kept = text[-_OVERLAP:]
    return (None if first is None else first // 1000 * 1000), sorted(spans)


def _nanoseconds(whole: str, part: str | None) -> int:
    return int(whole) * 1000 + int(f"{part or ''}000"[:3])


def place_clock(
    spans: Sequence[tuple[int, int]], marks: Sequence[Sequence[int]]
) -> tuple[int, int | None, str]:
    """Return by how much the library's clock is behind, how far that may be wrong, and in words.

    A mark is the wall clock before and after a span: the span must lie in between.
    """
    pairs = list(zip(spans, marks, strict=False))  # of a killed process the end is lost
    if not pairs:
        return 0, None, f"as torch_npu says; unchecked, no mark was {'found' if marks else 'given'}"
    least = max(before - start for (start, _), (before, _) in pairs)
    most = min(after - start - length for (start, length), (_, after) in pairs)
    moved = 0 if least <= 0 <= most else (least + most) // 2
    brackets = max(after - before for _, (before, after) in pairs)
    outside = max(
        max(before - start - moved, start + length + moved - after, 0)
        for (start, length), (before, after) in pairs
    )
    words = f"as torch_npu says, moved by {moved} ns" if moved else "as torch_npu says"
    return moved, outside + brackets, f"{words}; checked by {len(pairs)} marks"


class _Pass:
    """One reading of *raw*."""

    def __init__(self, raw: Path, epoch_ns: int) -> None:
        self._raw = raw
        self._epoch_ns = epoch_ns
        self._events = self._dropped = 0
        self._of_process: dict[Any, int] = {}
        self._devices: set[Any] = set()
        self._truncated = False

    def write(self, out: Path, header: Mapping[str, object]) -> Finished:
        with whole(out) as packed:

            def put(text: str) -> None:
                packed.write(text.encode("utf-8", "replace"))

            put(f'{{\n"rlprof": {json.dumps(header, allow_nan=False)},\n"traceEvents": [')
            lines: list[str] = []
            separator = "\n"
            for entry in self._entries():
                line = self._line(entry)
                if line is None:
                    self._dropped += 1
                    continue
                lines.append(line)
                if len(lines) >= _AT_ONCE:
                    put(separator + ",\n".join(lines))
                    separator = ",\n"
                    lines.clear()
            if lines:
                put(separator + ",\n".join(lines))
            counts = {"events": self._events, "dropped": self._dropped}
            counts |= {"device_events": sum(self._of_process.get(pid, 0) for pid in self._devices)}
            last = {**counts, "truncated": self._truncated}
            put(f'\n],\n"rlprof_counts": {json.dumps(last)}\n}}\n')
        return Finished(**counts, truncated=self._truncated, text_size=packed.count)

    def _entries(self) -> Iterator[Any]:
        """Go through the list, and find out whether it has an end."""
        text = TraceText(self._raw)
        try:
            for batch in text.batches():
                yield from json.loads(b"[" + batch + b"]")
        except UnreadableError as exc:
            raise ValueError(f"it is no list of events: it {exc}") from None
        self._dropped += text.dropped
        self._truncated = bool(text.problems)

    def _line(self, entry: Any) -> str | None:
        """Return an event as a line of the new trace; None if it is none."""
        if not isinstance(entry, dict) or not isinstance(entry.get("ph"), str):
            return None
        if entry["ph"] == "M":
            self._note(entry)
        else:
            at = self._time(entry.get("ts"))
            if at is None:
                return None
            entry["ts"] = at
            if "dur" in entry and type(entry["dur"]) not in (int, float):
                entry["dur"] = self._length(entry["dur"])
            if entry.get("dur", 0) < 0:
                entry["dur"] = 0
            pid = entry.get("pid")
            if isinstance(pid, (int, str)):
                self._of_process[pid] = self._of_process.get(pid, 0) + 1
        try:
            line = json.dumps(entry, ensure_ascii=False, allow_nan=False)
        except ValueError:  # 1e400, which Python reads as infinite
            return None
        self._events += 1
        return line.encode("utf-8", "replace").decode() if "\\ud" in line.lower() else line

    def _note(self, entry: Mapping[str, Any]) -> None:
        args = entry.get("args")
        label = args.get("labels") if isinstance(args, dict) else None
        if isinstance(label, str) and label.startswith("NPU"):
            self._devices.add(entry.get("pid"))

    def _time(self, text: object) -> float | None:
        found = _TIME.fullmatch(text if isinstance(text, str) else repr(text))
        at = _nanoseconds(found[1], found[2]) if found else 0
        return round((at - self._epoch_ns) / 1000, 3) if at >= _EARLIEST_NS else None

    def _length(self, text: object) -> float:
        found = _TIME.fullmatch(text) if isinstance(text, str) else None
        return _nanoseconds(found[1], found[2]) / 1000 if found else 0
