"""Device kernels that differ, where both sides have traces."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report.values.diff import KernelChange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._diff.part import Part
    from rlprof_report.device import TopName
    from rlprof_report.values.diff import KernelState

_SHARE = 0.01
"""Kernels below this share of their windows are not compared."""
_SLOWER = 1.1
_CALLS = 5
"""Calls of a kernel that a median needs."""


@attrs.frozen
class _Kernel:
    """One kernel over the captures of a role; by default it is in none."""

    median_us: float | None = None
    count: int = 0
    share: float = 0.0


def kernels(a: Part, b: Part) -> Iterator[KernelChange]:
    """Compare the kernels that take longest, where both have traces with device events."""
    left, right = _kernels(a), _kernels(b)
    for role in sorted(left.keys() & right.keys()):
        old, new = left[role], right[role]
        shortest = [min(one.share for one in side.values()) for side in (old, new)]
        for name in dict.fromkeys([*old, *new]):
            one, two = old.get(name, _Kernel()), new.get(name, _Kernel())
            if state := _state(one, two, *shortest):
                medians, counts = (one.median_us, two.median_us), (one.count, two.count)
                yield KernelChange(role, name, state, *medians, *counts)


def _kernels(part: Part) -> dict[str, dict[str, _Kernel]]:
    rows: defaultdict[str, defaultdict[str, list[TopName]]] = defaultdict(lambda: defaultdict(list))
    for capture in getattr(part.analysis.device, "captures", ()):
        first = capture.window.split("/")[0].split("-")[0]
        if not first.isdecimal() or part.has(int(first)):
            for row in capture.kernels:
                rows[capture.role][row.name].append(row)
    return {
        role: {name: _kernel(found) for name, found in named.items()}
        for role, named in rows.items()
    }


def _kernel(rows: Sequence[TopName]) -> _Kernel:
    """Put captures together: the median is that of their medians, each as often as its calls."""
    median_us = None
    timed = sorted((row.median_s, row.count) for row in rows if row.median_s is not None)
    if timed:
        values, counts = np.array(timed).T
        at = np.searchsorted(np.cumsum(counts), counts.sum() / 2)
        median_us = float(values[at]) * 1e6
    return _Kernel(median_us, sum(row.count for row in rows), max(row.share for row in rows))


def _state(a: _Kernel, b: _Kernel, a_shortest: float, b_shortest: float) -> KernelState | None:
    """Compare one kernel; None: it changed too little, or is too short for the other's list."""
    if not a.count:
        return "new" if b.share >= max(_SHARE, a_shortest) else None
    if not b.count:
        return "gone" if a.share >= max(_SHARE, b_shortest) else None
    if min(a.count, b.count) < _CALLS or max(a.share, b.share) < _SHARE:
        return None
    if not (a.median_us and b.median_us):
        return None
    if b.median_us >= _SLOWER * a.median_us:
        return "slower"
    return "faster" if a.median_us >= _SLOWER * b.median_us else None
