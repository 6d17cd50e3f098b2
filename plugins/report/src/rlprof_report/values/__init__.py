"""All values of a report, frozen; page, JSON and terminal print these and nothing else.

Seconds are floats. A moment is given in seconds after the first step of the report began;
`Analysis.epoch_ns` is the time of that.
"""

from __future__ import annotations

from rlprof_report.values.analysis import (
    Analysis,
    Clean,
    Counter,
    Definition,
    Finding,
    Lane,
    PhaseSummary,
    RankTable,
    Score,
)
from rlprof_report.values.step import (
    Blocked,
    Bubble,
    Flow,
    Help,
    Late,
    Overlap,
    PathPart,
    PhaseTime,
    Ranks,
    Replica,
    Rollout,
    Stage,
    Step,
    Touch,
)

__all__ = [
    "Analysis",
    "Blocked",
    "Bubble",
    "Clean",
    "Counter",
    "Definition",
    "Finding",
    "Flow",
    "Help",
    "Lane",
    "Late",
    "Overlap",
    "PathPart",
    "PhaseSummary",
    "PhaseTime",
    "RankTable",
    "Ranks",
    "Replica",
    "Rollout",
    "Score",
    "Stage",
    "Step",
    "Touch",
]
