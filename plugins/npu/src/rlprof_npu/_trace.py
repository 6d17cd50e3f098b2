"""Write torch_npu's `trace_view.json` again as a chrome-trace on the wall clock, in bounded memory.

torch_npu writes a bare list, with `ts` as text: microseconds since 1970 with three decimals. A
float of such a time is only exact to 0.25 us, so times are read as whole nanoseconds and written
relative to the first. Marks place them on the wall clock: torch_npu 2.13 reads a clock that is
never slewed and adds the offset of a slewed clock. The error was 0.25 s on a host up for 8 hours.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_traces import TraceText, UnreadableError, encode, timed, whole
from rlprof_traces.marks import OVERLAP, exact_ns, marks_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_BLOCK = 1 << 20
_EARLIEST_NS = 10**17  # 1973; an earlier time is not from the wall clock

_NUMBER = rb'"?(\d{1,19})(?:\.(\d{1,9}))?'
_TIME = re.compile(_NUMBER)
_TS = re.compile(rb'"ts":\s*' + _NUMBER)


@attrs.define
class Finished:
    """What `finish` wrote, and what it found on the way."""

    events: int = 0
    dropped: int = 0
    """Entries that are not events."""
    device_events: int = 0
    truncated: bool = False
    """The list has no end: the analysis failed while it wrote."""
    text_size: int = 0


def finish(
    raw: Path, out: Path, *, header: Mapping[str, object], marks: Sequence[Sequence[int]]
) -> Finished:
    """Write the trace *raw* to *out*, gzipped; *out* is whole or not there.

    Its first key `rlprof` holds *header* and the clock: *marks* are the `time.time_ns()` read
    before and after each span called `rlprof.clock`. Raise ValueError when *raw* holds no list.
    """
    first, spans = _look(raw)
    moved, error, how = place_clock(spans, marks)
    clock = {"epoch_ns": first + moved, "error_ns": error, "clock": how}
    found = Finished()
    with whole(out) as packed:
        packed.write(f'{{\n"rlprof": {json.dumps({**header, **clock})},\n"traceEvents": ['.encode())
        separator = b"\n"
        for lines in _batches(raw, first, found):
            packed.write(separator + b",\n".join(lines))
            separator = b",\n"
        counts = attrs.asdict(found, filter=lambda field, _: field.name != "text_size")
        packed.write(f'\n],\n"rlprof_counts": {json.dumps(counts)}\n}}\n'.encode())
    found.text_size = packed.count
    return found


def _look(raw: Path) -> tuple[int, list[tuple[int, int]]]:
    """Return the earliest time in *raw*, in whole microseconds, and the spans that mark the clock.

    A pass of its own, because both stand before the events.
    """
    first, spans, kept = 1 << 63, set(), b""
    with raw.open("rb") as file:
        while block := file.read(_BLOCK):
            text = kept + block
            times = (exact_ns(*found) for found in _TS.findall(text))
            first = min((at for at in times if _EARLIEST_NS <= at < first), default=first)
            spans |= marks_in(text)
            kept = text[-OVERLAP:]
    return (0 if first == 1 << 63 else first // 1000 * 1000), sorted(spans)


def place_clock(
    spans: Sequence[tuple[int, int]], marks: Sequence[Sequence[int]]
) -> tuple[int, int | None, str]:
    """Return by how much torch_npu's clock is behind, its error, and how both were found.

    A mark is the wall clock before and after a span: the span must lie in between.
    """
    pairs = list(zip(spans, marks, strict=False))  # a killed process has no mark at its end
    if not pairs:
        return 0, None, f"as torch_npu says; unchecked, no mark was {'found' if marks else 'given'}"
    least = max(before - start for (start, _), (before, _) in pairs)
    most = min(after - start - length for (start, length), (_, after) in pairs)
    moved = 0 if least <= 0 <= most else (least + most) // 2
    brackets = max(after - before for _, (before, after) in pairs)
    outside = max(least - moved, 0)  # as far from the other end: it lies in the middle
    words = f"as torch_npu says, moved by {moved} ns" if moved else "as torch_npu says"
    return moved, outside + brackets, f"{words}; checked by {len(pairs)} marks"


def _batches(raw: Path, first_ns: int, found: Finished) -> Iterator[list[bytes]]:
    """Read the events as lines of the new trace, many at once, and count them in *found*."""
    text, devices, of_process = TraceText(raw), set(), dict[Any, int]()
    try:
        for batch in text.batches():
            lines = []
            for entry in json.loads(b"[" + batch + b"]"):
                line = _line(entry, first_ns)
                if line is None:
                    found.dropped += 1
                    continue
                lines.append(line)
                pid = str(entry.get("pid"))
                if entry["ph"] != "M":
                    of_process[pid] = of_process.get(pid, 0) + 1
                elif _is_npu(entry.get("args")):
                    devices.add(pid)
            found.events += len(lines)
            if lines:
                yield lines
    except UnreadableError as exc:
        raise ValueError(f"it is not a list of events: it {exc}") from None
    found.dropped += text.dropped
    found.truncated = bool(text.problems)
    found.device_events = sum(of_process.get(pid, 0) for pid in devices)


def _line(entry: Any, first_ns: int) -> bytes | None:
    """Return an event with exact times relative to the first; None if it is not an event."""
    if not isinstance(entry, dict) or not isinstance(entry.get("ph"), str):
        return None
    if entry["ph"] == "M":
        return encode(entry)
    at, length = _time(entry.pop("ts", None)), entry.pop("dur", None)
    if at is None or at < _EARLIEST_NS:
        return None
    return timed(entry, at - first_ns, None if length is None else _time(length) or 0)


def _time(value: object) -> int | None:
    text = value if isinstance(value, str) else repr(value)
    found = _TIME.fullmatch(text.encode("ascii", "replace"))
    return exact_ns(found[1], found[2]) if found else None


def _is_npu(args: Any) -> bool:
    label = args.get("labels") if isinstance(args, dict) else None
    return isinstance(label, str) and label.startswith("NPU")
