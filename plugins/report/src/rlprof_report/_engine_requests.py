"""The requests that an engine recorded in a window, put together from the slices of its trace.

A lane of such a trace holds one request at a time: its slice, and behind it those of its parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rlprof_report._slices import Slice, Slices, nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDING = "_requests.trace.json.gz"
"""How the names end of what rlprof-engine writes of requests."""
_PARTS = {"prefill": "prefill_ns", "decode": "decode_ns"}
"""Slice of a request → the key that says when it began."""


class _Event(Slice):
    args: dict[str, Any] = msgspec.field(default_factory=dict)


def engine_requests(path: Path, shift_ns: int, problems: list[str]) -> Iterator[dict[str, Any]]:
    """Yield what is noted of each request in the trace *path*, with the times of its life.

    `start_ns` and `end_ns`, and `prefill_ns` and `decode_ns` where it got so far, are epoch ns.
    *problems* get what cannot be read.
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
    """Say how often *request* lost its place, whatever the engine calls it; None: unknown."""
    count = request.get("preemptions", request.get("retractions"))
    return count if type(count) is int else None
