"""Kineto's raw trace made strict, compressed and placed on the clock: for adapters of engines, too.

An engine that records with torch's profiler leaves the same files as the tool `torch` does.
"""

from __future__ import annotations

from rlprof_torch._kineto import Finished, finish

__all__ = ["Finished", "finish"]
