"""rlprof-report: says why an RL step was slow."""

from __future__ import annotations
