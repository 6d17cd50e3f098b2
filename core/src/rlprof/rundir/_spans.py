"""Spans as values, and as lines of a file.

A line holds: kind, name, monotonic start and end in ns, step, thread, own id, parent's id, and
what else there is. It is written when the span has ended, by the helper thread.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Literal

import attrs

from rlprof.rundir._journal import as_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof.types import Clock, Target

SpanKind = Literal["step", "phase", "span"]

_HALF = "\\ud"
"""Perhaps half of a surrogate pair, which is no character."""

_quote = encode_basestring_ascii
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

RawSpan = tuple[
    str, str, int, int, int | None, int, int, int | None, int, "Mapping[str, Any] | None"
]
"""kind, name, start, end, step, thread, id, parent, occurrence, attributes: as kept in memory."""


@attrs.frozen
class Span:
    """A named stretch of time that rlprof itself wrote down."""

    kind: SpanKind
    name: str
    start_ns: int
    """When it began: epoch ns, on the wall clock of its host."""
    end_ns: int
    """When it ended: epoch ns."""
    step: int | None
    target: Target
    process: str
    """The name of the process' files in the run folder."""
    thread: int
    id: int
    """Unique within its process."""
    parent: int | None
    occurrence: int
    attributes: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.start_ns) / 1e9


def span_record(raw: RawSpan) -> dict[str, Any]:
    """Name the fields of *raw* as the file does; what says nothing is left out."""
    kind, name, start, end, step, thread, own_id, parent, occurrence, attributes = raw
    record: dict[str, Any] = {"kind": kind, "name": name, "t0": start, "t1": end}
    record |= {"step": step, "thread": thread, "id": own_id}
    if parent is not None:
        record["parent"] = parent
    if occurrence:
        record["occurrence"] = occurrence
    if attributes:
        record["attributes"] = dict(attributes)
    return record


def span_line(raw: RawSpan) -> bytes:
    """Encode *raw* as a line, as `as_line(span_record(raw))` does, in less than half the time."""
    kind, name, start, end, step, thread, own_id, parent, occurrence, attributes = raw
    rest = f',"parent":{parent}' if parent is not None else ""
    if occurrence:
        rest += f',"occurrence":{occurrence}'
    try:
        if attributes:
            rest += f',"attributes":{_encode(dict(attributes))}'
        line = (
            f'{{"kind":"{kind}","name":{_quote(name)},"t0":{start},"t1":{end},'
            f'"step":{"null" if step is None else step},"thread":{thread},"id":{own_id}{rest}}}\n'
        )
    except (ValueError, TypeError, RecursionError):
        line = _HALF
    return as_line(span_record(raw)) if _HALF in line else line.encode("ascii")


def span_from_record(
    record: Mapping[str, Any],
    *,
    target: Target,
    process: str,
    clocks: Sequence[Clock],
    offset_ns: int = 0,
) -> Span:
    """Rebuild a span; raise ValueError or the like for what is not one.

    A span that the driver of a fleet wrote down (`w0`) has the wall clock of the member's host,
    which is *offset_ns* ahead.
    """
    from rlprof.rundir._clock import clock_at

    if record["kind"] not in ("step", "phase", "span"):
        raise ValueError(record["kind"])
    if "w0" in record:
        start, end = int(record["w0"]), int(record["w1"])
        epoch = start - offset_ns
    else:
        start, end = int(record["t0"]), int(record["t1"])
        epoch, _ = clock_at(clocks, start)
    return Span(
        kind=record["kind"],
        name=str(record["name"]),
        start_ns=epoch,
        end_ns=epoch + max(0, end - start),
        step=_number(record.get("step")),
        target=target,
        process=process,
        thread=int(record.get("thread", 0)),
        id=int(record["id"]),
        parent=_number(record.get("parent")),
        occurrence=int(record.get("occurrence", 0)),
        attributes=dict(record.get("attributes") or {}),
    )


def _number(value: Any) -> int | None:
    return None if value is None else int(value)
