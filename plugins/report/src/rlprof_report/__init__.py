"""rlprof-report: find out why an RL step was slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._report import Report, notebook

if TYPE_CHECKING:
    from rlprof import Run
    from rlprof_report.values import Analysis

__all__ = ["Report", "analyse", "notebook"]


def analyse(run: Run, *, step: int | None = None, most_json_bytes: int | None = None) -> Analysis:
    """Account for every step of *run*, from its spans, its manifest and its traces.

    With *step*, findings and verdict compare that step with its neighbours. If the traces hold more
    than *most_json_bytes*, they are not read and a note says so; None reads all, at 120 MB/s.
    """
    from rlprof_report._analyse import analyse  # brings numpy, which takes time

    return analyse(run, step=step, most_json_bytes=most_json_bytes)
