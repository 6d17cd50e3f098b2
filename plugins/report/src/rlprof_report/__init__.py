"""rlprof-report: says why an RL step was slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._report import Report, notebook

if TYPE_CHECKING:
    from rlprof import Run
    from rlprof_report.values import Analysis

__all__ = ["Report", "analyse", "notebook"]


def analyse(run: Run, *, step: int | None = None, most_json_bytes: int | None = None) -> Analysis:
    """Account for every step of *run*, from its spans and manifest; add what its traces say.

    With *step*, findings and verdict are about that one against its neighbours. Traces of more
    than *most_json_bytes* in all are not read, which a note says; None: all are read, 120 MB/s.
    """
    from rlprof_report._analyse import analyse  # numpy: nothing that imports this may wait for it

    return analyse(run, step=step, most_json_bytes=most_json_bytes)
