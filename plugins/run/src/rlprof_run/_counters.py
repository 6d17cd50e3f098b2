"""Counters as values: the state of a process, its devices and its engines over time.

A line of `counters/<process>.jsonl` holds the monotonic time and the values; a line about an
engine also holds its target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof_run._clock import clock_at
from rlprof_run._fields import target_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof.types import Clock, Target
    from rlprof_run._run import Process


@attrs.frozen
class Sample:
    """Counters that were read at one moment."""

    target: Target
    """The process or engine that the counters are about."""
    process: str
    """The name of the files of the process that read them."""
    time_ns: int
    """Wall clock, epoch ns, on the clock of the run."""
    values: Mapping[str, float]
    """By name; a name ends in its unit: `rss_bytes`, `device0_busy` (0 to 1)."""


def sample_from_record(
    record: Mapping[str, Any], *, process: Process, clocks: Sequence[Clock]
) -> Sample:
    """Rebuild a sample; raise ValueError or the like if it is not one."""
    time_ns, _ = clock_at(clocks, int(record["mono"]))
    values = {str(name): float(value) for name, value in dict(record["values"]).items()}
    return Sample(target_of(record) or process.target, process.name, time_ns, values)
