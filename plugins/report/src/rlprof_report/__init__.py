"""rlprof-report: says why an RL step was slow."""

from __future__ import annotations

from rlprof_report._analyse import analyse

__all__ = ["analyse"]
