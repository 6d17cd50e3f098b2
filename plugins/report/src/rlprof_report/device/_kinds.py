"""The device events that count, and their kinds: communication, copy or compute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rlprof_report.device._events import COPY, SYNC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof_report.device._events import Events

COMPUTE, COMMUNICATION, MEMORY = range(3)
WORDS = ("compute", "communication", "copy")
_COMMUNICATION = re.compile(
    r"^nccl|^ncclDev|ncclKernel|^rccl|^hccl|^mscclpp?|cross_device_reduce|all_reduce_(?:one|two)_?shot"
    r"|one_shot_all_reduce|two_shot_all_reduce|multimem_all_|nvshmem|deep_ep|internode::|intranode::",
    re.IGNORECASE,
)
"""NCCL's own, and what vLLM, SGLang, torch's symmetric memory and DeepEP put in its place."""
UNKNOWN = -(1 << 62)
"""The launch time of an event whose launch is not in the trace."""


def kinds_of(names: Iterable[str], name: Any, category: Any) -> Any:
    """Return the kind of each event; *name* is its number in *names*."""
    of_name = np.fromiter(map(_kind, names), np.int8)
    kinds = of_name[name] if len(name) else np.zeros(0, np.int8)
    # An event that was recorded as a copy is a copy, whatever its name.
    return np.where((category == COPY) & (kinds == COMPUTE), MEMORY, kinds)


def _kind(name: str) -> int:
    if _COMMUNICATION.search(name):
        return COMMUNICATION
    return MEMORY if name.startswith(("Memcpy", "Memset", "hipMem")) else COMPUTE


@attrs.frozen(eq=False)
class Chosen:
    """Device events, as columns."""

    starts: Any
    ends: Any
    name: Any
    kind: Any
    launched_at: Any
    of_graph: Any
    """Whether the launch of each started several."""
    where: Any
    """Their places among all events of the trace."""
    unlaunched: int
    """How many have no launch in the trace, counted or not."""

    def __len__(self) -> int:
        return len(self.starts)


def chosen(events: Events, from_ns: int, until_ns: int) -> Chosen:
    """Choose the events that count, and cut them to the window."""
    launched_at = _launches(events)
    starts, ends = np.maximum(events.starts, from_ns), np.minimum(events.ends, until_ns)
    counts = (events.kind != SYNC) & (ends > starts)
    unlaunched = int(np.count_nonzero((launched_at == UNKNOWN) & (events.kind != SYNC)))
    where = np.flatnonzero(counts)
    kinds = kinds_of(events.names, events.name, events.kind)
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


def _launches(events: Events) -> Any:
    found = np.full(len(events.starts), UNKNOWN)
    if not len(events.launched):
        return found
    order = np.argsort(events.launched, kind="stable")
    launched = events.launched[order]
    at = np.clip(np.searchsorted(launched, events.correlation), 0, len(launched) - 1)
    is_known = (launched[at] == events.correlation) & (events.correlation >= 0)
    return np.where(is_known, events.launched_at[order][at], found)


def _of_graphs(events: Events) -> Any:
    """Mark events that share their launch: its time says nothing about one of them."""
    if not len(events.correlation):
        return np.zeros(0, bool)
    _, of, counts = np.unique(
        np.where(events.kind == SYNC, -1, events.correlation),
        return_inverse=True,
        return_counts=True,
    )
    return (counts[of] > 1) & (events.correlation >= 0) & (events.kind != SYNC)
