"""The table `spans`: all spans that rlprof wrote, of every process and step."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from rlprof_report._figures.timeline import timeline_of
from rlprof_report._spans.recorded import read_recorded
from rlprof_report.tables.schema import replica_of, run_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof_run import Run, Span

_NOTED = {
    "replica": str, "trajectory": str, "turn": int, "tool": str, "prompt_tokens": int,
    "tokens": int, "group": str, "version": str,
}  # fmt: skip
"""Attributes that have a column, in the order of the columns; docs/manifest.md names them."""


def rows(run: Run, problems: list[str]) -> Iterator[tuple[Any, ...]]:
    """Go through all spans, process by process."""
    name, moments = run_name(run), Moments(run)
    for span in run.spans(problems):
        target, rest = span.target, dict(span.attributes)
        replica, *noted = (taken(rest, key, kind) for key, kind in _NOTED.items())
        yield (
            name, span.process, target.role, target.rank,
            replica_of(target) if replica is None else replica, span.kind, span.name,
            moments.step_of(span), span.occurrence, span.start_ns, span.end_ns, span.id,
            span.parent, span.thread, *noted, _as_json(rest) if rest else None,
        )  # fmt: skip


def taken(rest: dict[str, Any], key: str, kind: type) -> Any:
    """Take *key* out of *rest* as a *kind*; a value of another type stays there."""
    value = rest.get(key)
    if value is None or (kind is int and (type(value) is not int or abs(value) >= 2**63)):
        return None
    del rest[key]
    return kind(value)


def _as_json(attributes: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(attributes).decode()
    except (ValueError, OverflowError):  # half a character, a number beyond 64 bits
        from rlprof.rundir import as_json

        return as_json(attributes)


class Moments:
    """The steps of the process that leads, read when the first span asks for one."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def step_of(self, span: Span) -> int | None:
        """Return the step *span* names, else the one it began in."""
        if span.step is not None:
            return span.step
        numbers, starts, ends = self._steps
        place = bisect_right(starts, span.start_ns) - 1
        return numbers[place] if place >= 0 and span.start_ns < ends[place] else None

    @cached_property
    def _steps(self) -> tuple[list[int], list[int], list[int]]:
        timeline = timeline_of(read_recorded(self._run))
        if timeline is None:
            return [], [], []
        return timeline.numbers.tolist(), timeline.starts.tolist(), timeline.ends.tolist()
