"""What the requests of an engine's replica waited for (figure 15), from the adapters' traces.

A lane of such a trace holds one request at a time: its slice, and behind it those of its parts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rlprof_report.device.values import RequestTimes
from rlprof_traces import TraceText

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rlprof import Target

ENDING = "_requests.trace.json.gz"


@attrs.define
class _Request:
    begin_us: float
    is_finished: bool
    preemptions: int | None
    queue_us: float | None = None
    first_token_us: float | None = None


@attrs.define
class Requests:
    """The requests of one replica, trace by trace."""

    found: list[_Request] = attrs.field(factory=list)

    def read(self, path: Path) -> tuple[str, ...]:
        """Read the trace *path*; return what is wrong with it."""
        text, lanes = TraceText(path), dict[Any, _Request]()
        dropped = 0
        for batch in text.batches():
            for event in json.loads(b"[" + batch + b"]"):
                try:
                    self._take(event, lanes)
                except (TypeError, ValueError, KeyError, AttributeError):
                    dropped += 1
        lost = text.dropped + dropped
        return (*text.problems, *([f"events that cannot be read: {lost} left out"] if lost else []))

    def _take(self, event: dict[str, Any], lanes: dict[Any, _Request]) -> None:
        if event.get("ph") != "X" or event.get("cat") != "request":
            return
        name, at, lane = event["name"], float(event["ts"]), event["tid"]
        if name.startswith("request "):
            args = event.get("args") or {}
            count = args.get("preemptions", args.get("retractions"))
            count = count if type(count) is int else None
            lanes[lane] = _Request(at, "unfinished" not in args, count)
            self.found.append(lanes[lane])
        elif lane in lanes:
            one = lanes[lane]
            if name == "prefill":
                one.queue_us = at - one.begin_us
            elif name == "decode":
                one.first_token_us = at - one.begin_us

    def times(self, target: Target) -> RequestTimes:
        """Sum them up."""
        queue = [one.queue_us for one in self.found if one.queue_us is not None]
        first = [one.first_token_us for one in self.found if one.first_token_us is not None]
        counts = [one.preemptions for one in self.found if one.preemptions is not None]
        return RequestTimes(
            target=str(target),
            role=target.role,
            replica=target.replica,
            count=len(self.found),
            finished=sum(one.is_finished for one in self.found),
            queue_p50_s=_percentile(queue, 50),
            queue_p99_s=_percentile(queue, 99),
            first_token_p50_s=_percentile(first, 50),
            first_token_p99_s=_percentile(first, 99),
            preemptions=sum(counts) if counts else None,
        )


def _percentile(values: Iterable[float], share: float) -> float | None:
    values = list(values)
    return float(np.percentile(values, share)) / 1e6 if values else None
