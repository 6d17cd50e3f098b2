"""Stream the raw chrome trace that Kineto exported into a strict, compressed one.

Separate because it runs later, in a helper process: it does not need torch, only the raw file.
`rlprof_traces` reads the file, `_repair.py` makes odd events JSON, `_clock.py` places them.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_torch._clock import base_in, mark_spans, place_clock
from rlprof_torch._repair import repaired
from rlprof_traces import TraceText, UnreadableError, encode, whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof_torch._clock import Spans

_DEVICE = re.compile(rb'"cat": "(?:kernel|gpu_mem(?:cpy|set)|gpu_user_annotation)"')
_PHASE, _BETWEEN = b'\n    "ph": "', b"\n  },"
_OURS = ("rlprof", "rlprof_counts", "traceEvents")
_EVENTS = json.JSONDecoder(parse_int=str, parse_float=str)


@attrs.define
class Finished:
    """The file that `finish` wrote, and its findings."""

    events: int = 0
    repaired: int = 0
    """Events that were no strict JSON and now are."""
    dropped: int = 0
    """Events and pieces of metadata that could not be kept."""
    truncated: bool = False
    """The raw file ends early: the process died in the export, or the disk was full."""
    epoch_ns: int | None = None
    """Epoch nanoseconds of `ts` 0; None when a truncated file has lost it."""
    error_ns: int | None = None
    """How far an event may lie from the host's clock, judged by the marks; None without any."""
    clock: str = ""
    """How both were found, in words."""
    device_events: int = 0
    """Kernels, copies and annotations on a device; 0 when only the CPU was recorded."""
    text_size: int = 0
    """Bytes of the new file, before they are packed."""


def finish(raw: Path, out: Path, *, header: Mapping[str, object], marks: Spans = ()) -> Finished:
    """Write the trace *raw* to *out* as strict JSON, gzipped; *out* is whole or not there.

    Its first key "rlprof" holds *header* and the clock. *marks* are the `time.time_ns()` read
    before and after each span called `rlprof.clock`, in the order of recording. Raise ValueError
    when *raw* holds no trace.
    """
    text, found = TraceText(raw, repaired), Finished()
    batches = text.batches()
    try:
        first = next(batches, b"")
    except UnreadableError as exc:
        why = f"{raw}: {exc}; record again, and check the space on that disk"
        raise ValueError(why) from None
    spans = mark_spans(raw) if marks else []
    base = base_in(raw, text.head)
    clock = place_clock(base, spans, marks)
    found.epoch_ns, found.error_ns, found.clock = clock
    own = {name: getattr(found, name) for name in ("epoch_ns", "error_ns", "clock")}
    with whole(out) as packed:
        put = packed.write
        put(b'{\n"rlprof": ' + json.dumps({**header, **own}, allow_nan=False).encode())
        put(_lines(text.head, _OURS) + b',\n"traceEvents": [')
        separator = b"\n"
        for batch in chain([first], batches):
            if events := _counted(batch, found):
                put(separator + events)
                separator = b",\n"
        put(b"\n]" + _lines(text.tail, (*_OURS, *text.head)))
        _judge(text, found)
        names = ("events", "repaired", "dropped", "device_events", "truncated")
        counts = {name: getattr(found, name) for name in names}
        put(b',\n"rlprof_counts": ' + json.dumps(counts).encode() + b"\n}\n")
    found.text_size = packed.count
    return found


def _counted(batch: bytes, found: Finished) -> bytes:
    """Count the events of *batch* in *found*, and leave out what is none."""
    count = batch.count(_PHASE)
    if count == batch.count(b'"ph"') == batch.count(_BETWEEN) + 1:
        # Kineto's lines: to decode them would take as long as all the rest.
        found.events += count
        found.device_events += len(_DEVICE.findall(batch))
        return batch.strip(b"\r\n")
    entries = _EVENTS.decode(f"[{batch.decode()}]") if batch.strip() else []
    events = [one for one in entries if isinstance(one, dict)]
    found.events += len(events)
    found.device_events += len(_DEVICE.findall(batch))
    if len(events) == len(entries):
        return batch.strip()
    found.dropped += len(entries) - len(events)
    return b",\n".join(map(encode, events))


def _judge(text: TraceText, found: Finished) -> None:
    cut = [one for one in text.problems if one.startswith(("is cut short", "is damaged"))]
    found.truncated = bool(cut)
    found.repaired = text.repaired
    found.dropped += text.dropped + len(text.problems) - len(cut)


def _lines(members: Mapping[str, Any], taken: tuple[str, ...]) -> bytes:
    kept = {key: value for key, value in members.items() if key not in taken}
    return b"".join(b",\n" + _text(key) + b": " + _text(value) for key, value in kept.items())


def _text(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:  # half a surrogate pair, or 1e400
        return encode(value)
