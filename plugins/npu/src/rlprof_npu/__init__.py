"""rlprof's tool `npu`: Ascend NPUs with torch_npu.profiler.

`_options` what it can be asked · `_npu` the tool · `_library` what is installed, and what is in the
way · `_recording` one window · in the helper process `_export` with `_raw` (the library's folder),
`_analysis` and `analysing` (its own, in a process of its own), `_trace`, and `_cluster` (the
folder of all ranks).
"""

from __future__ import annotations

from rlprof_npu._npu import Npu

__all__ = ["Npu"]
