"""rlprof's tool `npu`, experimental: Ascend NPUs with torch_npu.profiler.

In the process that trains: `_options` (what you can ask), `_npu` (the tool), `_library` (what is
installed, and which other profilers are on), `_recording` (one window), `_forks`.
In the helper process: `_export`, `_raw` (torch_npu's folder), `_analysis` and `analysing`
(torch_npu's analysis in a process of its own), `_trace`.
"""

from __future__ import annotations

from rlprof_npu._npu import Npu

__all__ = ["Npu"]
