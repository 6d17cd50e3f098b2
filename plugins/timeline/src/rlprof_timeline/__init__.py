"""rlprof exporter `timeline`: every trace and span of a run in one file on one clock."""

from __future__ import annotations

from rlprof_timeline._timeline import Timeline

__all__ = ["Timeline"]
