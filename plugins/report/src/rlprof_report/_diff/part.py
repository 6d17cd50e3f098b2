"""The steps of a run to compare: the clean ones of those that the user asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._diff.effect import Series
from rlprof_report.values.diff import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof import Run
    from rlprof_report.values import Analysis, Finding, Step

_WARM_UP = 3
"""The first steps of a run: caches fill, kernels compile."""


@attrs.frozen(eq=False)
class Part:
    """A run with its analysis, and the steps that the user asked for."""

    run: Run
    analysis: Analysis
    """Of the whole run: the places of steps count from its beginning."""
    findings: tuple[Finding, ...] = ()
    """Those of the steps that were asked for."""
    ranges: tuple[range, ...] = ()
    """Empty: all."""
    typed: str = ""
    """The steps as the user named them."""

    def has(self, step: int) -> bool:
        """Whether *step* was asked for."""
        return not self.ranges or any(step in one for one in self.ranges)

    def clean(self) -> list[tuple[int, Step]]:
        """Return the steps to compare, each with its place in the run."""
        return [(at, step) for at, step in self._asked() if not _left_out(at, step)]

    def side(self) -> Side:
        """Say which steps are compared."""
        left_out: dict[str, tuple[int, ...]] = {}
        for at, step in self._asked():
            if reason := _left_out(at, step):
                left_out[reason] = (*left_out.get(reason, ()), step.step)
        steps = [step for _, step in self.clean()]
        tokens = [step.tokens for step in steps]
        return Side(
            run=str(self.run.path),
            run_id=self.run.run_id,
            chosen=self.typed,
            steps=tuple(step.step for step in steps),
            left_out=left_out,
            tokens=float(np.median(tokens)) if tokens and min(tokens) > 0 else None,
        )

    def _asked(self) -> list[tuple[int, Step]]:
        return [(at, s) for at, s in enumerate(self.analysis.steps) if self.has(s.step)]


def _left_out(at: int, step: Step) -> str:
    """Say why a step is not compared; empty if it is."""
    if step.state != "clean":
        return step.state
    return "warm-up" if at < _WARM_UP else ""


def series(
    steps: list[tuple[int, Step]], seconds: Callable[[Step], float], *, by_tokens: bool
) -> Series:
    """Return the times of one thing in those *steps* that have it."""
    rows = [
        (taken, step.tokens if by_tokens else 1, at)
        for at, step in steps
        if (taken := seconds(step)) > 0
    ]
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return Series(seconds=table[:, 0], tokens=table[:, 1], at=table[:, 2])


def phase_seconds(step: Step) -> Mapping[str, float]:
    """Return the time of each outermost phase of *step*."""
    return {phase.name: phase.seconds for phase in step.phases}
