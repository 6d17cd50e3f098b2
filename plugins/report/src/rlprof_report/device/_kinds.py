"""What a device event is: communication, a copy, or compute; by rlprof's rules or by HTA's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rlprof_report.device._events import COPY

if TYPE_CHECKING:
    from collections.abc import Iterable

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
