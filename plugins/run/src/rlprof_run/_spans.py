"""Spans as values, made of the lines of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import attrs

from rlprof_run._clock import clock_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof.types import Clock, Target

SpanKind = Literal["step", "phase", "span"]


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


def span_from_record(
    record: Mapping[str, Any],
    *,
    target: Target,
    process: str,
    clocks: Sequence[Clock],
    offset_ns: int = 0,
) -> Span:
    """Rebuild a span; raise ValueError or the like if it is not one.

    A span that the driver of a fleet wrote down (`w0`) has the wall clock of the member's host,
    which is *offset_ns* ahead.
    """
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
