"""The device events that count: inside the window, or those that HTA counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rlprof_report.device._events import SYNC
from rlprof_report.device._kinds import kinds_of

if TYPE_CHECKING:
    from rlprof_report.device._events import Events
    from rlprof_report.device._kinds import Rules

UNKNOWN = -(1 << 62)
"""When something was launched whose launch is not in the trace."""


@attrs.frozen(eq=False)
class Chosen:
    """Device events, as columns."""

    starts: Any
    ends: Any
    name: Any
    kind: Any
    launched_at: Any
    of_graph: Any
    """Whether the launch of each has started several."""
    where: Any
    """Their places among all events of the trace."""
    unlaunched: int
    """How many have no launch in the trace, whether they count or not."""

    def __len__(self) -> int:
        return len(self.starts)


def chosen(events: Events, rules: Rules, from_ns: int | None, until_ns: int | None) -> Chosen:
    """Choose the events that count, and cut them to the window."""
    launched_at = _launches(events)
    starts, ends = events.starts, events.ends
    counts = np.ones(len(starts), bool)
    if rules == "hta":
        starts, ends = _in_microseconds(starts, ends)
        counts = events.stream >= 0
        if len(events.steps) > 1:
            counts &= (launched_at != UNKNOWN) & (launched_at < max(events.steps.values()))
    else:
        counts = events.kind != SYNC
    unlaunched = int(np.count_nonzero((launched_at == UNKNOWN) & (events.kind != SYNC)))
    if from_ns is not None:
        starts = np.maximum(starts, from_ns)
    if until_ns is not None:
        ends = np.minimum(ends, until_ns)
    if from_ns is not None or until_ns is not None:
        counts &= ends > starts
    where = np.flatnonzero(counts)
    kinds = kinds_of(events.names, events.name, events.kind, rules)
    return Chosen(
        starts[where],
        ends[where],
        events.name[where],
        kinds[where],
        launched_at[where],
        _of_graphs(events)[where],
        where,
        unlaunched,
    )


def _in_microseconds(starts: Any, ends: Any) -> tuple[Any, Any]:
    """Round as HTA does: in doubles, starts up and ends down, where starts have decimals."""
    if not np.any(starts % 1000):
        return starts, ends
    at = starts // 1000 + starts % 1000 / 1000
    until = at + (ends - starts) / 1000
    return (np.ceil(at).astype(np.int64) * 1000, np.floor(until).astype(np.int64) * 1000)


def _launches(events: Events) -> Any:
    """Return when the call began that launched each event."""
    found = np.full(len(events.starts), UNKNOWN)
    if not len(events.launched):
        return found
    order = np.argsort(events.launched, kind="stable")
    launched = events.launched[order]
    at = np.clip(np.searchsorted(launched, events.correlation), 0, len(launched) - 1)
    is_known = (launched[at] == events.correlation) & (events.correlation >= 0)
    return np.where(is_known, events.launched_at[order][at], found)


def _of_graphs(events: Events) -> Any:
    """Tell the events whose launch has started several: correlation says nothing of one of them."""
    if not len(events.correlation):
        return np.zeros(0, bool)
    _, of, counts = np.unique(
        np.where(events.kind == SYNC, -1, events.correlation),
        return_inverse=True,
        return_counts=True,
    )
    return (counts[of] > 1) & (events.correlation >= 0) & (events.kind != SYNC)
