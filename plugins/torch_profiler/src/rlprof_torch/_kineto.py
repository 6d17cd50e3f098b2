"""Stream the raw chrome trace that Kineto exported into a strict, compressed one.

Separate because it runs later, in a helper process: it does not need torch, only the raw file. What
is wrong with a piece of text is the business of `_repair.py`, when its events were that of
`_clock.py`; here is the file. `rlprof_traces` reads what is JSON already; Kineto's text is not.

Measured (CPython 3.11, MB/s of input per CPU second, growth of peak memory): 300 000 `torch.add`
of torch 2.13, 86 MB: 65 MB/s, 30 MB; a V100 trace, 15 MB: 50 MB/s. Half of it is the stdlib's
JSON decoder as the judge, 9 to 11 ns a byte; the stdlib has no cheaper one.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, BinaryIO

import attrs

from rlprof_torch import _repair
from rlprof_torch._clock import base_near_end, base_of, mark_spans, place_clock
from rlprof_traces import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rlprof_torch._clock import Spans


_BLOCK = 2 << 20
_LONGEST = 32 << 20  # a head, a tail or an event beyond this is damage: a hole of zero bytes
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
_OURS = ("rlprof", "rlprof_counts", "traceEvents")

# Alone on its line it is Kineto's own: the metadata before it holds no newlines.
_EVENTS_LINE = re.compile(r'^[ \t]*"traceEvents": \[[ \t]*$', re.MULTILINE)
_EVENTS_KEY = re.compile(r'"traceEvents"\s*:\s*\[')
_KINETO = re.compile(r'\s*\n(?=  \{\n    ")')
_BETWEEN = '\n  },\n  {\n    "'
_SPLIT = re.compile(r'(?<=\n  \}),\s*(?=\{\n    ")')
_LAST = re.compile(r"\n  \}(?=\s*\]\s*[,}])")
_WHOLE = re.compile(r"\n  \}(?=\s*(?:,|\]|\Z))")
_GAP = re.compile(r"[\s,]*")
_RESUME = re.compile(r'\}(?=\s*,\s*\{\s*"(?:ph|name|cat|pid|tid|ts|args)"\s*:)')

_LENIENT = json.JSONDecoder(strict=False)


@attrs.frozen
class Finished:
    """The files that `finish` wrote, and its findings."""

    events: int
    repaired: int
    """Events and metadata members that were no strict JSON and now are."""
    dropped: int
    """Events and metadata members that could not be kept."""
    truncated: bool
    """The raw file ends early: the process died in the export, or the disk was full."""
    epoch_ns: int | None
    """Epoch nanoseconds of `ts` 0; None when a truncated file has lost it."""
    error_ns: int | None
    """How far an event may lie from the host's clock, judged by the marks; None without any."""
    clock: str
    """How both were found, in words."""
    device_events: int
    """Kernels, copies and annotations on a device; 0 when only the CPU was recorded."""
    bytes_in: int
    text_size: int
    """Bytes of the new file, before they are packed."""
    bytes_out: int


def finish(raw: Path, out: Path, *, header: Mapping[str, object], marks: Spans = ()) -> Finished:
    """Write the trace *raw* to *out* as strict JSON, gzipped; *out* is whole or not there.

    Its first key "rlprof" holds *header* and the clock. *marks* are the `time.time_ns()` read
    before and after each span called `rlprof.clock`, in the order of recording. Raise ValueError
    when *raw* holds no trace.
    """
    spans = mark_spans(raw) if marks else []
    try:
        return _Pass(raw, base_near_end(raw)).write(out, header, spans, marks)
    except _OtherBaseError as other:  # a span's name near the end looked like the base
        return _Pass(raw, other.base).write(out, header, spans, marks)


class _OtherBaseError(Exception):
    def __init__(self, base: int | None) -> None:
        self.base = base


class _Pass:
    """One reading of *raw*, with *base* taken for granted until its head or tail disagrees."""

    def __init__(self, raw: Path, base: int | None) -> None:
        self._raw = raw
        self._base = base
        self._base_is_known = False
        self._truncated = False
        self._events = self._repaired = self._dropped = self._device_events = 0

    def write(
        self, out: Path, header: Mapping[str, object], spans: Spans, marks: Spans
    ) -> Finished:
        with self._raw.open("rb") as file, whole(out) as packed:
            put = packed.write
            source = _Source(file)
            head = self._head(source)
            epoch_ns, error_ns, clock = place_clock(self._base, source.text, spans, marks)
            first = {**header, "epoch_ns": epoch_ns, "error_ns": error_ns, "clock": clock}
            put(b'{\n"rlprof": ' + json.dumps(first, allow_nan=False).encode())
            put(_lines(head) + b',\n"traceEvents": [')
            separator = b"\n"
            for run in _runs(source):
                if events := self._strict(run):
                    put(separator + events)
                    separator = b",\n"
            put(b"\n]" + _lines(self._tail(source, head)))
            counts = {
                "events": self._events,
                "repaired": self._repaired,
                "dropped": self._dropped,
                "device_events": self._device_events,
            }
            last = {**counts, "truncated": self._truncated}
            put(b',\n"rlprof_counts": ' + json.dumps(last).encode() + b"\n}\n")
        return Finished(
            **counts,
            truncated=self._truncated,
            epoch_ns=epoch_ns,
            error_ns=error_ns,
            clock=clock,
            bytes_in=self._raw.stat().st_size,
            text_size=packed.count,
            bytes_out=out.stat().st_size,
        )

    def _head(self, source: _Source) -> Mapping[str, str]:
        source.more()
        if not source.text:
            raise ValueError(
                f"{self._raw}: is empty; record again, and check the space on that disk"
            )
        start = source.text[:4096].lstrip(" \t\r\n")
        if not start.startswith("{"):
            raise ValueError(f"{self._raw}: begins with {start[:9]!r}; pass Kineto's raw .json")
        while not (key := _EVENTS_LINE.search(source.text) or _EVENTS_KEY.search(source.text)):
            if len(source.text) > _LONGEST or not source.more():
                raise ValueError(
                    f"{self._raw}: has no traceEvents, the export was cut short or this is not"
                    " a trace; record again, and check the space on that disk",
                )
        text = source.text[: key.start()].lstrip().removeprefix("{")
        source.text = source.text[key.end() :]
        while len(source.text) < _BLOCK and source.more():
            pass
        head = self._kept(_repair.members(text), _OURS)
        base = base_of(head)
        if base is not None:
            self._base, self._base_is_known = base, True
        return head

    def _tail(self, source: _Source, head: Mapping[str, str]) -> Mapping[str, str]:
        while source.closed and len(source.text) < _LONGEST and source.more():
            pass
        text = source.text.strip() if source.closed else ""
        self._truncated = not text.endswith("}")
        found = _repair.members(text.removesuffix("}"))
        if found.dropped and not self._truncated:
            # Cut right behind an inner brace? Then the text reads better with it.
            cut = _repair.members(text)
            self._truncated = cut.dropped < found.dropped
            found = cut if self._truncated else found
        tail = self._kept(found, (*_OURS, *head))
        base = base_of(tail)
        if not self._base_is_known and base != self._base:
            raise _OtherBaseError(base)
        return tail

    def _kept(self, found: _repair.Members, taken: Sequence[str]) -> Mapping[str, str]:
        kept = {key: value for key, value in found.values.items() if key not in taken}
        self._repaired += found.repaired
        self._dropped += found.dropped + len(found.values) - len(kept)
        return kept

    def _strict(self, run: list[str]) -> bytes:
        """Return the events of *run* as strict JSON: unchanged if possible, else one by one."""
        text = ",\n".join(run)
        try:
            events = _repair.strict(f"[{text}]")
            plain = text.encode()
        except ValueError:
            events, plain = [], b""
        whole = len(events) == sum(part.count(_BETWEEN) + 1 for part in run)
        if whole and set(map(type, events)) == {dict} and not _repair.is_forged(text):
            self._count(events)
            return plain
        pieces = (piece for part in run for piece in _SPLIT.split(part))
        return ",\n".join(filter(None, map(self._strict_event, pieces))).encode()

    def _strict_event(self, text: str) -> str:
        fixed = _repair.event(text)
        if fixed is None:
            self._dropped += 1
            return ""
        self._count([_repair.strict(fixed)])
        self._repaired += fixed != text
        return fixed

    def _count(self, events: Sequence[Mapping[str, object]]) -> None:
        self._events += len(events)
        cats = [event.get("cat") for event in events if event.get("ph") == "X"]
        self._device_events += sum(map(_DEVICE.count, cats))


class _Source:
    """A window of text on the raw file; bytes that are no UTF-8 appear as lone surrogates."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self.text = ""
        self.ended = False
        self.closed = False
        """Whether the list of events was seen to end."""

    def more(self) -> bool:
        data = self._file.read(_BLOCK)
        self.text += self._decode(data, not data)
        self.ended = not data
        return not self.ended


def _runs(source: _Source) -> Iterator[list[str]]:
    """Yield texts of whole events until their list ends, the file ends or makes no sense."""
    start = _KINETO.match(source.text)
    if start is None:
        yield from _runs_of_any_layout(source)
        return
    source.text = source.text[start.end() :]
    while True:
        last = _LAST.search(source.text)
        if last:
            yield [source.text[: last.end()]]
            source.text = source.text[source.text.index("]", last.end()) + 1 :]
            source.closed = True
            return
        cut = source.text.rfind(_BETWEEN)
        if cut >= 0:
            yield [source.text[: cut + 4]]
            source.text = source.text[cut + 6 :]
        if len(source.text) > _LONGEST or not source.more():
            ends = [whole.end() for whole in _WHOLE.finditer(source.text)]
            yield [source.text[:end] for end in ends[-1:]]
            return


def _runs_of_any_layout(source: _Source) -> Iterator[list[str]]:
    """Do the same where lines say nothing: the decoder tells where each event ends."""
    events: list[str] = []
    position = 0
    while True:
        position += len(_GAP.match(source.text, position)[0])  # type: ignore[index]
        end = _event_end(source.text, position)
        if not end and not source.ended and len(source.text) - position <= _BLOCK:
            yield events
            events, source.text, position = [], source.text[position:], 0
            source.more()
            continue
        if source.text.startswith("]", position):
            source.text, source.closed = source.text[position + 1 :], True
            break
        if not end:
            resume = _RESUME.search(source.text, position)
            if resume is None:
                break
            end = resume.end()
        events.append(source.text[position:end])
        position = end
    yield events


def _event_end(text: str, position: int) -> int:
    """Return the end of the object at *position*; 0: it is not whole."""
    if not text.startswith("{", position):
        return 0
    try:
        return _LENIENT.raw_decode(text, position)[1]
    except (ValueError, RecursionError):
        return 0


def _lines(members: Mapping[str, str]) -> bytes:
    return "".join(f",\n{json.dumps(key)}: {value}" for key, value in members.items()).encode()
