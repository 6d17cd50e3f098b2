"""The slices of one trace of rlprof, a batch of the file at a time, and the requests among them.

A slice is a complete event (`ph` is X). Marks, flows and counters are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from rlprof_traces import TraceText, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_RAW = msgspec.json.Decoder(list[msgspec.Raw])
_FURTHEST_US = 4e15
"""From any epoch this still is a time in 64 bits of nanoseconds."""
ENDING = "_requests.trace.json.gz"
"""How the names end of what rlprof-engine writes of requests."""
_PARTS = {"prefill": "prefill_ns", "decode": "decode_ns"}
"""Slice of a request → the key that says when it began."""


class Slice(msgspec.Struct, gc=False):
    """The part of an event that every table needs; times are microseconds, as in the file."""

    ph: str = ""
    ts: float | None = None
    dur: float = 0.0
    name: str = ""
    cat: str = ""
    pid: int | str | None = None
    tid: int | str | None = None


S = TypeVar("S", bound=Slice)


class Slices(Generic[S]):
    """One reading of a trace; *problems* are known when it is over."""

    def __init__(self, path: Path, shift_ns: int, shape: type[S]) -> None:
        self.problems: list[str] = []
        self.zero_ns = shift_ns
        """When `ts` 0 was, in epoch ns; known with the first slices."""
        self._text = TraceText(path)
        self._odd = 0
        self._many = msgspec.json.Decoder(list[shape])  # type: ignore[valid-type]
        self._one = msgspec.json.Decoder(shape)

    def batches(self) -> Iterator[list[S]]:
        """Yield the slices; those with invalid times are counted as odd."""
        is_begun = False
        try:
            for batch in self._text.batches():
                if not is_begun:
                    self.zero_ns += epoch_ns_of(self._text.head)
                    is_begun = True
                every, odd = decoded(batch, self._many, self._one)
                found = [one for one in every if one.ph == "X"]
                timed = [one for one in found if _is_timed(one)]
                self._odd += odd + len(found) - len(timed)
                if timed:
                    yield timed
        except UnreadableError as exc:
            self.problems.append(str(exc))
        self.problems += self._text.problems
        if lost := self._text.dropped + self._odd:
            self.problems.append(f"{lost} of its events could not be read")


def decoded(batch: bytes, many: Any, one: Any) -> tuple[list[Any], int]:
    """Decode a batch of events, one by one if that fails; count those that cannot be decoded."""
    text = b"[" + batch + b"]"
    try:
        return many.decode(text), 0
    except (msgspec.DecodeError, RecursionError):
        found, odd = [], 0
        for raw in _RAW.decode(text):
            try:
                found.append(one.decode(raw))
            except (msgspec.DecodeError, RecursionError):
                odd += 1
        return found, odd


def nanoseconds(us: list[Any]) -> Any:
    """Return microseconds as whole nanoseconds, also where a double holds no more digits."""
    import numpy as np

    times = np.array(us, np.float64)
    whole = np.floor(times)
    return whole.astype(np.int64) * 1000 + np.rint((times - whole) * 1000).astype(np.int64)


def number(value: object) -> int | None:
    """Return *value* if it is a number that a column can hold."""
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def epoch_ns_of(head: Mapping[str, Any]) -> int:
    """Return the time of `ts` 0 in a trace of rlprof; raise UnreadableError if it has none."""
    header = head.get("rlprof")
    epoch_ns = header.get("epoch_ns") if isinstance(header, dict) else None
    if type(epoch_ns) is not int or abs(epoch_ns) > _FURTHEST_US * 1000:
        raise UnreadableError("has no clock in its `rlprof` object")
    return epoch_ns


def _is_timed(event: Slice) -> bool:
    return event.ts is not None and abs(event.ts) < _FURTHEST_US and abs(event.dur) < _FURTHEST_US


class _Event(Slice):
    args: dict[str, Any] = msgspec.field(default_factory=dict)


def engine_requests(path: Path, shift_ns: int, problems: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the data of each request in the trace *path*, with the times of its life.

    `start_ns` and `end_ns`, and `prefill_ns` and `decode_ns` if it got that far, are epoch ns.
    *problems* get the unreadable parts.
    """
    trace, begun = Slices(path, shift_ns, _Event), dict[Any, dict[str, Any]]()
    for events in trace.batches():
        starts = nanoseconds([one.ts for one in events]) + trace.zero_ns
        ends = starts + nanoseconds([one.dur for one in events])
        for event, start, end in zip(events, starts.tolist(), ends.tolist(), strict=True):
            if event.name in _PARTS and event.tid in begun:
                begun[event.tid][_PARTS[event.name]] = start
            elif event.cat == "request" and event.name.startswith("request "):
                if event.tid in begun:
                    yield begun[event.tid]
                begun[event.tid] = {**event.args, "start_ns": start, "end_ns": end}
    yield from begun.values()
    problems += trace.problems


def preemptions_of(request: dict[str, Any]) -> int | None:
    """Return how often *request* was preempted, in the words of any engine; None: unknown."""
    count = request.get("preemptions", request.get("retractions"))
    return count if type(count) is int else None
