"""The steps that a page shows in detail: the slow one, and the median one to compare it with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step


def chosen_of(analysis: Analysis) -> list[Step]:
    """Return the slowest step that shows the first finding, else the slowest clean one.

    Then comes the median one, if it is another. A step that rlprof itself slowed down is there only
    if there is no other. Empty: there is no step.
    """
    finished = [step for step in analysis.steps if step.state != "unfinished"]
    clean = [step for step in finished if step.state == "clean"]
    of = clean or finished or list(analysis.steps)
    first = set(analysis.findings[0].steps) if analysis.findings else set()
    blamed = [step for step in of if step.step in first]
    chosen = sorted(blamed or of, key=lambda step: -step.seconds)[:1]
    ordered = sorted(clean, key=lambda step: step.seconds)
    median = ordered[(len(ordered) - 1) // 2 :][:1]
    return chosen + [one for one in median if one is not chosen[0]]
