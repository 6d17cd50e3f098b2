"""rlprof's tools on PyTorch: `torch` (torch.profiler) and `torch_memory` (allocator snapshots).

`_options` what they can be asked · `_torch` and `_memory` the tools · `_kineto` and `_repair` what
turns Kineto's raw trace into a strict one, in the helper process.
"""

from __future__ import annotations

from rlprof_torch._memory import TorchMemory
from rlprof_torch._torch import Torch

__all__ = ["Torch", "TorchMemory"]
