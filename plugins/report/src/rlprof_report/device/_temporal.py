"""How the time of a device was used, and why it was idle (figures 16 and 17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report.device._kinds import COMMUNICATION, COMPUTE, UNKNOWN
from rlprof_report.device._sweeps import covered, union
from rlprof_report.device.values import Idle, Temporal

if TYPE_CHECKING:
    from rlprof_report.device._kinds import Chosen

_SHORT_NS = 10_000
"""What a device may need between two kernels, and from a launch to its kernel: 2 and 8 us on an
H200 with eager PyTorch."""


def temporal_of(found: Chosen) -> Temporal:
    """Break the time of a device down; *found* holds at least one event."""

    def during(*kinds: int) -> int:
        own = np.isin(found.kind, kinds)
        return covered(found.starts[own], found.ends[own])

    span = int(found.ends.max() - found.starts.min())
    compute, works = during(COMPUTE), during(COMPUTE, COMMUNICATION)
    busy = covered(found.starts, found.ends)
    return Temporal(
        window_s=span / 1e9,
        compute_s=compute / 1e9,
        communication_s=during(COMMUNICATION) / 1e9,
        idle_s=(span - busy) / 1e9,
        exposed_communication_s=(works - compute) / 1e9,
        exposed_copy_s=(busy - works) / 1e9,
    )


def idle_of(found: Chosen) -> Idle:
    """Return for each gap what the event that ended it had waited for."""
    starts, ends = union(found.starts, found.ends)
    order = np.argsort(found.starts, kind="stable")
    at = order[np.searchsorted(found.starts[order], starts[1:])]
    gaps = starts[1:] - ends[:-1]
    launched = found.launched_at[at]
    is_known = (launched != UNKNOWN) & ~found.of_graph[at]
    late = np.where(is_known, launched - ends[:-1], 0)
    is_short = (gaps < _SHORT_NS) & (late <= 0)
    is_known &= ~is_short
    not_yet = np.clip(np.where(late > 0, late + _SHORT_NS, 0), 0, gaps)
    return Idle(
        launch_bound_s=int(not_yet[is_known].sum()) / 1e9,
        waiting_s=int((gaps - not_yet)[is_known].sum()) / 1e9,
        short_s=int(gaps[is_short].sum()) / 1e9,
        unknown_s=int(gaps[~is_known & ~is_short].sum()) / 1e9,
    )
