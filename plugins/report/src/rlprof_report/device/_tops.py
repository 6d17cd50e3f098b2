"""What took longest: kernels by their time, host operators by their own (figure 19)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rlprof_report.device._kinds import WORDS
from rlprof_report.device._sweeps import covered, self_times
from rlprof_report.device.values import TopName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof_report.device._events import Events
    from rlprof_report.device._kinds import Chosen

_TOP = 10


@attrs.define
class Total:
    """All calls of one name."""

    ns: int
    count: int
    kind: str
    median_ns: float | None = None


def kernels_of(events: Events, found: Chosen) -> dict[str, Total]:
    """Sum up device events by name; the longest have a median."""
    if not len(found):
        return {}
    times = found.ends - found.starts
    totals = _totals(events.names, found.name, times)
    kinds = np.zeros(len(events.names), np.int8)
    kinds[found.name] = found.kind
    names = list(events.names)
    for number, total in totals.items():
        total.kind = WORDS[kinds[number]]
    for number in sorted(totals, key=lambda number: -totals[number].ns)[:_TOP]:
        totals[number].median_ns = float(np.median(times[found.name == number]))
    return {names[number]: total for number, total in totals.items()}


def operators_of(events: Events, from_ns: int, until_ns: int) -> dict[str, Total]:
    """Sum up the self times of host operators by name, inside the window."""
    starts, ends = np.maximum(events.host_starts, from_ns), np.minimum(events.host_ends, until_ns)
    inside = np.flatnonzero(ends >= starts)
    starts, ends = starts[inside], ends[inside]
    own = self_times(starts, ends, events.host_thread[inside])
    names = list(events.host_names)
    totals = _totals(events.host_names, events.host_name[inside], own)
    return {names[number]: total for number, total in totals.items()}


def compile_ns(events: Events, from_ns: int, until_ns: int) -> int:
    """Return how long `torch.compile` compiled inside the window."""
    compiles = [name.endswith(" (dynamo_timed)") for name in events.host_names]
    own = np.flatnonzero(np.array(compiles, bool)[events.host_name])
    starts, ends = events.host_starts[own], events.host_ends[own]
    return covered(np.clip(starts, from_ns, until_ns), np.clip(ends, from_ns, until_ns))


def tops(totals: dict[str, Total]) -> tuple[TopName, ...]:
    """Return the longest, and their share of all."""
    every = sum(total.ns for total in totals.values())
    longest = sorted(totals.items(), key=lambda item: (-item[1].ns, item[0]))[:_TOP]
    return tuple(
        TopName(
            name,
            total.ns / 1e9,
            total.count,
            None if total.median_ns is None else total.median_ns / 1e9,
            total.ns / every if every else 0.0,
            total.kind,
        )
        for name, total in longest
    )


def together(many: Iterable[dict[str, Total]]) -> dict[str, Total]:
    """Add up the totals of several traces."""
    sums: dict[str, Total] = {}
    for totals in many:
        for name, total in totals.items():
            known = sums.setdefault(name, Total(0, 0, total.kind))
            known.ns += total.ns
            known.count += total.count
    return sums


def _totals(names: Any, number: Any, times: Any) -> dict[int, Total]:
    sums = np.zeros(len(names), np.int64)
    np.add.at(sums, number, times)
    counts = np.bincount(number, minlength=len(names))
    return {
        int(one): Total(int(sums[one]), int(counts[one]), "host") for one in np.flatnonzero(counts)
    }
