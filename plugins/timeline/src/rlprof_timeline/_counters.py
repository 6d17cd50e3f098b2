"""Counters of a process and its engines as counter tracks: memory, utilisation, requests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlprof_traces import timed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof_timeline._source import Source


def counters(source: Source, pids: Mapping[str, int], zero_ns: int) -> Iterator[bytes]:
    """Draw the counters of *source*, and of each engine it drives, on the process of their target.

    Perfetto calls the track by the names of the event and of its argument: `rss_bytes value`.
    """
    for sample in source.counters():
        pid = pids[str(sample.target)]
        for name, value in sample.values.items():
            if math.isfinite(value):
                event = {"ph": "C", "name": name, "pid": pid, "args": {"value": value}}
                yield timed(event, sample.time_ns - zero_ns)
