"""Pairs of clocks: clocks are measured, not assumed.

rlprof stamps everything with the monotonic clock, which never steps, and reads pairs of both
clocks now and then. `rlprof_run` turns one into the other.
"""

from __future__ import annotations

import time

from rlprof.types import Clock


def read_clock() -> Clock:
    """Read both clocks; the tightest of three tries, for a thread may be put aside in between."""
    tries = []
    for _ in range(3):
        before = time.monotonic_ns()
        realtime = time.time_ns()
        after = time.monotonic_ns()
        tries.append(Clock(realtime, (before + after) // 2, after - before))
    return min(tries, key=lambda pair: pair.bound_ns)
