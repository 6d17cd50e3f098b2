"""Counters of a process and its engines as counter tracks: memory, utilisation, requests.

Separate because an engine is not a process among the sources: it becomes one here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlprof_traces import named, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_timeline._source import Source


def counters(
    source: Source, pid: int, zero_ns: int, numbers: Iterator[int], places: Iterator[int]
) -> Iterator[bytes]:
    """Draw the counters of *source* on its process *pid*, and those of each engine on another.

    Perfetto calls the track by the names of the event and of its argument: `rss_bytes value`.
    """
    pids = {source.target: pid}
    for sample in source.counters():
        target = str(sample.target)
        if target not in pids:
            pids[target] = next(numbers)
            yield from named("process", pids[target], 0, f"{target} · counters", places)
        for name, value in sample.values.items():
            if math.isfinite(value):
                event = {"ph": "C", "name": name, "pid": pids[target], "args": {"value": value}}
                yield timed(event, sample.time_ns - zero_ns)
