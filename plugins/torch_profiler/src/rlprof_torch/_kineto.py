"""Stream the raw chrome trace that Kineto exported into a strict, compressed one.

Separate because it runs later, in a helper process: it needs neither torch nor rlprof, only the
raw file. What is wrong with a piece of text is the business of `_repair.py`; here is the file.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import attrs

from rlprof_torch import _repair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

CLOCK_MARK = "rlprof.clock"

_BLOCK = 2 << 20
_LONGEST = 64 << 20  # a head, a tail or an event beyond this is damage: a hole of zero bytes
_LEVEL = 4
_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"})
_OURS = ("rlprof", "rlprof_counts", "traceEvents")
_ABSOLUTE_US = 10**14  # 1973; relative ts start anew every three months, below 10**13

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
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b')
_TS = re.compile(r'"ts"\s*:\s*(\d{1,19})')
_MICROSECONDS = re.compile(r"(\d{1,18})(?:\.(\d{1,9}))?")

_LENIENT = json.JSONDecoder(strict=False)
_EXACT = json.JSONDecoder(parse_int=str, parse_float=str)


@attrs.frozen
class Finished:
    """What `finish` wrote, and what it found on the way."""

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
    bytes_out: int


def finish(
    raw: Path,
    out: Path,
    *,
    header: Mapping[str, object],
    marks: Sequence[tuple[int, int]] = (),
) -> Finished:
    """Write the trace *raw* to *out* as strict JSON, gzipped; *out* is whole or not there.

    Its first key "rlprof" holds *header* and the clock. *marks* are the `time.time_ns()` read
    before and after each span called `rlprof.clock`, in the order of recording. Raise ValueError
    when *raw* holds no trace.
    """
    base = _base_near_end(raw)
    spans = _mark_spans(raw) if marks else []
    while True:
        try:
            return _Pass(raw, base).write(out, header, spans, marks)
        except _OtherBaseError as other:  # a span's name looked like the base: once at most
            base = other.base


class _OtherBaseError(Exception):
    def __init__(self, base: int | None) -> None:
        self.base = base


class _Pass:
    """One reading of *raw*, with *base* taken for granted until head or tail say otherwise."""

    def __init__(self, raw: Path, base: int | None) -> None:
        self._raw = raw
        self._base = base
        self._base_is_known = False
        self._truncated = False
        self._events = self._repaired = self._dropped = self._device_events = 0

    def write(
        self,
        out: Path,
        header: Mapping[str, object],
        spans: Sequence[tuple[int, int]],
        marks: Sequence[tuple[int, int]],
    ) -> Finished:
        with self._raw.open("rb") as file, _whole_gzip(out) as put:
            source = _Source(file)
            head = self._head(source)
            epoch_ns, error_ns, clock = _clock(self._base, source.text, spans, marks)
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
                "truncated": self._truncated,
            }
            put(b',\n"rlprof_counts": ' + json.dumps(counts).encode() + b"\n}\n")
        return Finished(
            **counts,
            epoch_ns=epoch_ns,
            error_ns=error_ns,
            clock=clock,
            device_events=self._device_events,
            bytes_in=self._raw.stat().st_size,
            bytes_out=out.stat().st_size,
        )

    def _head(self, source: _Source) -> Mapping[str, str]:
        source.more()
        start = source.text[:4096].lstrip()
        if not source.text:
            message = f"{self._raw}: is empty; record again and mind the free space on that disk"
            raise ValueError(message)
        if not start.startswith("{"):
            message = f"{self._raw}: begins with {start[:20]!r}, not with '{{'; pass the raw .json"
            raise ValueError(message)
        while not (found := _EVENTS_LINE.search(source.text) or _EVENTS_KEY.search(source.text)):
            if len(source.text) > _LONGEST or not source.more():
                message = (
                    f"{self._raw}: holds no traceEvents, the export was cut short or this is no"
                    " trace; record again and mind the free space on that disk"
                )
                raise ValueError(message)
        text = source.text[: found.start()].lstrip().removeprefix("{")
        source.text = source.text[found.end() :]
        while len(source.text) < _BLOCK and source.more():
            pass
        head = self._members(_repair.members(text), _OURS)
        base = _base_of(head)
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
            # The brace closed an inner object when the text reads better with it.
            inner = _repair.members(text)
            self._truncated = inner.dropped < found.dropped
            found = inner if self._truncated else found
        tail = self._members(found, (*_OURS, *head))
        if not self._base_is_known and _base_of(tail) != self._base:
            raise _OtherBaseError(_base_of(tail))
        return tail

    def _members(self, found: _repair.Members, taken: Sequence[str]) -> Mapping[str, str]:
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
            pass
        else:
            expected = sum(part.count(_BETWEEN) + 1 for part in run)
            if len(events) == expected and self._is_sound(events, text):
                self._count(events)
                return plain
        pieces = (piece for part in run for piece in _SPLIT.split(part))
        return ",\n".join(filter(None, map(self._strict_event, pieces))).encode()

    @staticmethod
    def _is_sound(events: Sequence[object], text: str) -> bool:
        return set(map(type, events)) <= {dict} and not _repair.is_forged(text)

    def _strict_event(self, text: str) -> str:
        fixed = _repair.event(text)
        if fixed is None:
            self._dropped += 1
            return ""
        self._count([_repair.strict(fixed)])
        self._repaired += fixed != text
        return fixed

    def _count(self, events: Sequence[Mapping[str, object]]) -> None:
        self._device_events += sum(
            event.get("cat") in _DEVICE and event.get("ph") == "X" for event in events
        )
        self._events += len(events)


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
    kineto = _KINETO.match(source.text)
    if kineto is None:
        yield from _other_runs(source)
        return
    source.text = source.text[kineto.end() :]
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
            if ends:
                yield [source.text[: ends[-1]]]
            return


def _other_runs(source: _Source) -> Iterator[list[str]]:
    """Do the same for any other layout: the decoder tells where each event ends."""
    events: list[str] = []
    position = 0
    while True:
        position = _skip_gap(source.text, position)
        end = _event_end(source.text, position)
        if end:
            events.append(source.text[position:end])
            position = end
            continue
        if source.text.startswith("]", position):
            source.text = source.text[position + 1 :]
            source.closed = True
            break
        resume = None
        if len(source.text) - position > _BLOCK or source.ended:
            resume = _RESUME.search(source.text, position)
            if resume is None:
                break
            events.append(source.text[position : resume.end()])
            position = resume.end()
            continue
        yield events
        events = []
        source.text = source.text[position:]
        position = 0
        source.more()
    yield events


def _skip_gap(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap else position


def _event_end(text: str, position: int) -> int:
    """Return where the object at *position* ends, 0 when there is no whole one."""
    if not text.startswith("{", position):
        return 0
    try:
        return _LENIENT.raw_decode(text, position)[1]
    except (ValueError, RecursionError):
        return 0


@contextmanager
def _whole_gzip(out: Path) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes to *out*, which appears when the block ends without error."""
    part = out.with_name(f".{out.name}.part")
    squeeze = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)  # 31: a gzip header without a time
    try:
        with part.open("wb") as file:
            yield lambda data: file.write(squeeze.compress(data))
            file.write(squeeze.flush())
            file.flush()
            os.fsync(file.fileno())
        part.replace(out)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _lines(members: Mapping[str, str]) -> bytes:
    return "".join(f",\n{json.dumps(key)}: {value}" for key, value in members.items()).encode()


def _base_of(members: Mapping[str, str]) -> int | None:
    base = members.get("baseTimeNanoseconds", "")
    return int(base) if re.fullmatch(r"\d{1,19}", base) else None


def _base_near_end(raw: Path) -> int | None:
    """Guess the base: torch 2.4 to 2.6 write it behind the events, but it is wanted before them."""
    with raw.open("rb") as file:
        file.seek(max(0, raw.stat().st_size - (1 << 20)))
        bases = _BASE.findall(file.read())
    return int(bases[-1]) if bases else None


def _mark_spans(raw: Path) -> list[tuple[int, int]]:
    """Return start and duration in ns of all spans named `rlprof.clock`, by start.

    Costs 0.3 ns a byte: only the name is searched, and JSON read around it.
    """
    name = f'"{CLOCK_MARK}"'.encode()
    spans = []
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
    opening = text.rfind("{", 0, hit)
    while opening >= 0:
        try:
            event, _ = _EXACT.raw_decode(text, opening)
        except (ValueError, RecursionError):
            event = {}
        if event.get("name") == CLOCK_MARK:
            start, length = (_nanoseconds(event.get(key)) for key in ("ts", "dur"))
            found = event.get("ph") == "X" and start is not None and length is not None
            return [(start, length)] if found else []
        opening = text.rfind("{", 0, opening)
    return []


def _nanoseconds(text: object) -> int | None:
    """Return *text*, microseconds with decimals, exactly: a float is 0.25 us off after 2003."""
    found = _MICROSECONDS.fullmatch(text) if isinstance(text, str) else None
    return int(found[1]) * 1000 + int(f"{found[2] or ''}000"[:3]) if found else None


def _clock(
    base: int | None,
    text: str,
    spans: Sequence[tuple[int, int]],
    marks: Sequence[tuple[int, int]],
) -> tuple[int | None, int | None, str]:
    """Return epoch_ns, error_ns and how they were found."""
    if base is not None:
        epoch, how = base, "baseTimeNanoseconds plus ts"
    elif any(int(ts) > _ABSOLUTE_US for ts in _TS.findall(text)):
        epoch, how = 0, "ts is absolute"
    elif spans:
        epoch, how = marks[0][0] - spans[0][0], "ts set by the first mark, its base is missing"
    else:
        return None, None, "unknown, the base of ts is missing and no mark was found"
    if not spans:
        return epoch, None, f"{how}; unchecked, no mark was {'found' if marks else 'given'}"
    # By order when all are there; else (one fell outside the recording) each by the nearest.
    pairs = zip(spans, marks, strict=True) if len(spans) == len(marks) else None
    errors = (
        [_error(epoch, span, mark) for span, mark in pairs]
        if pairs
        else [min(_error(epoch, span, mark) for mark in marks) for span in spans]
    )
    return epoch, max(errors), f"{how}; checked by {len(spans)} of {len(marks)} marks"


def _error(epoch: int, span: tuple[int, int], mark: tuple[int, int]) -> int:
    """Return how far *span* may lie from the truth: outside its bracket plus the bracket."""
    begin = epoch + span[0]
    outside = max(mark[0] - begin, begin + span[1] - mark[1], 0)
    return outside + mark[1] - mark[0]
