"""The device events that count, and their kinds: communication, copy or compute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from rlprof_report.device._events import COPY, SYNC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof_report.device._events import Events

Rules = Literal["rlprof", "hta"]

COMPUTE, COMMUNICATION, MEMORY, OTHER = range(4)
WORDS: tuple[Literal["compute", "communication", "copy"], ...] = (
    "compute", "communication", "copy", "copy",
)  # fmt: skip
_COMMUNICATION = re.compile(
    r"^nccl|^ncclDev|ncclKernel|^rccl|^hccl|^mscclpp?|cross_device_reduce|all_reduce_(?:one|two)_?shot"
    r"|one_shot_all_reduce|two_shot_all_reduce|multimem_all_|nvshmem|deep_ep|internode::|intranode::",
    re.IGNORECASE,
)
"""NCCL's own, and what vLLM, SGLang, torch's symmetric memory and DeepEP put in its place."""
_HTA_MEMORY = re.compile(r"(^(hip)?Memcpy)|(^(hip)?Memset)|(^dma)")
_HTA_OTHER = re.compile(
    r"(^nccl)|(.*Memcpy)|(.*Memset)|(.*dma)|(^.*Sync)|(cuda.*LaunchKernel)|(^runFunction)"
)
UNKNOWN = -(1 << 62)
"""The launch time of an event whose launch is not in the trace."""


def kinds_of(names: Iterable[str], name: Any, category: Any, rules: Rules) -> Any:
    """Return the kind of each event; *name* is its number in *names*."""
    of_name = np.fromiter(
        (_hta(text) if rules == "hta" else _ours(text) for text in names), np.int8
    )
    kinds = of_name[name] if len(name) else np.zeros(0, np.int8)
    if rules == "rlprof":  # what is recorded as a copy is one, whatever its name
        kinds = np.where((category == COPY) & (kinds == COMPUTE), MEMORY, kinds)
    return kinds


def _ours(name: str) -> int:
    if _COMMUNICATION.search(name):
        return COMMUNICATION
    return MEMORY if name.startswith(("Memcpy", "Memset", "hipMem")) else COMPUTE


def _hta(name: str) -> int:
    if name.startswith("nccl"):
        return COMMUNICATION
    if _HTA_MEMORY.match(name):
        return MEMORY
    return OTHER if _HTA_OTHER.match(name) else COMPUTE


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


def chosen(events: Events, rules: Rules, from_ns: int, until_ns: int) -> Chosen:
    """Choose the events that count, and cut them to the window."""
    launched_at = _launches(events)
    if rules == "hta":
        starts, ends = _in_microseconds(events.starts, events.ends)
        counts = events.stream >= 0
        if len(events.steps) > 1:
            counts &= (launched_at != UNKNOWN) & (launched_at < max(events.steps.values()))
    else:
        starts, ends = np.maximum(events.starts, from_ns), np.minimum(events.ends, until_ns)
        counts = (events.kind != SYNC) & (ends > starts)
    unlaunched = int(np.count_nonzero((launched_at == UNKNOWN) & (events.kind != SYNC)))
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
