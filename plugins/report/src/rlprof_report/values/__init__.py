"""What a report holds, as frozen values; page, JSON and terminal print these and nothing else.

Seconds are floats. Times that begin or end something are `_s` after the first step of the report
began, so that a page needs no epoch; `Analysis.epoch_ns` is that moment.
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
from rlprof_report.values.rollout import Late, Replica, Rollout
from rlprof_report.values.step import (
    Bubble,
    Flow,
    Help,
    Overlap,
    PathPart,
    PhaseTime,
    Ranks,
    Stage,
    Step,
    Touch,
)

__all__ = [
    "Analysis",
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
