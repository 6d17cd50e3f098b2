"""The steps that a page shows in detail: the slow one, and the median one to compare it with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step


@attrs.frozen
class Chosen:
    """The steps shown in detail; None: there is none."""

    slow: Step | None
    median: Step | None

    @property
    def both(self) -> tuple[Step, ...]:
        """The steps, the slow one first; only one if they are the same."""
        steps = [self.slow] if self.slow is not None else []
        if self.median is not None and self.median is not self.slow:
            steps.append(self.median)
        return tuple(steps)


def chosen_of(analysis: Analysis) -> Chosen:
    """Return the slowest step that shows the first finding, else the slowest clean one.

    It returns a step that rlprof itself slowed down only if there is no other.
    """
    finished = [step for step in analysis.steps if step.state != "unfinished"]
    clean = [step for step in finished if step.state == "clean"]
    of = clean or finished or list(analysis.steps)
    first = set(analysis.findings[0].steps) if analysis.findings else set()
    blamed = [step for step in of if step.step in first]
    slow = max(blamed or of, key=lambda step: step.seconds, default=None)
    if not clean:
        return Chosen(slow, None)
    ordered = sorted(clean, key=lambda step: step.seconds)
    return Chosen(slow, ordered[(len(ordered) - 1) // 2])
