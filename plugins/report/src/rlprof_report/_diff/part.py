"""The steps of a run to compare, and how long their phases took."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof.types import DRIVER
from rlprof_report._figures.path import BETWEEN
from rlprof_report.values.diff import Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof import Run
    from rlprof_report.values import Analysis, Finding
    from rlprof_report.values.step import Step

_WARM_UP = 3
"""The first steps of a run: caches fill, kernels compile."""


@attrs.frozen(eq=False)
class Part:
    """A run with its analysis, and the steps that the user asked for."""

    run: Run
    analysis: Analysis
    """Of the whole run: the places of steps count from its beginning."""
    findings: tuple[Finding, ...] = ()
    """The steps that were asked for."""
    ranges: tuple[range, ...] = ()
    """Empty: all."""
    typed: str = ""
    """The steps as the user named them."""

    def has(self, step: int) -> bool:
        """Whether *step* was asked for."""
        return not self.ranges or any(step in one for one in self.ranges)

    def compared(self) -> list[tuple[int, Step]]:
        """Return the steps to compare, each with its place in the run."""
        return [(at, step) for at, step, why in self._asked() if not why]

    def side(self) -> Side:
        """Name the steps that are compared."""
        left_out: dict[str, tuple[int, ...]] = {}
        for _, step, why in self._asked():
            if why:
                left_out[why] = (*left_out.get(why, ()), step.step)
        steps = [step for _, step in self.compared()]
        tokens = [step.tokens for step in steps]
        return Side(
            run=str(self.run.path),
            chosen=self.typed,
            steps=tuple(step.step for step in steps),
            left_out=left_out,
            tokens=float(np.median(tokens)) if tokens and min(tokens) > 0 else None,
        )

    @property
    def peers(self) -> str:
        """The role of the process that leads, if it is one of several ranks; else empty."""
        for process in self.run.processes:
            if process.name == self.analysis.leader and process.target.role != DRIVER:
                return process.target.role if process.target.world_size > 1 else ""
        return ""

    def has_frontier(self) -> bool:
        """Whether every step says what each phase adds to the slowest rank."""
        return all(_stages(step, self.peers) for _, step in self.compared())

    def phases(self, step: Step, *, of_slowest: bool) -> Mapping[str, float]:
        """Return the seconds of each phase of *step*, and of the time in none.

        A rank that comes early waits where ranks meet. That wait counts nowhere *of_slowest*.
        """
        if of_slowest:
            return _stages(step, self.peers)
        return {one.name: one.seconds for one in step.phases} | {BETWEEN: step.unaccounted_s}

    def has_phase(self, name: str) -> bool:
        """Whether any step has the phase *name*, however short."""
        there = {BETWEEN}
        for _, step in self.compared():
            there |= {one.name for one in step.phases} | {one.name for one in step.frontier}
        return name in there

    def _asked(self) -> Iterator[tuple[int, Step, str]]:
        """Yield place, step, and why it is left out. Warm-up that the user named stays in."""
        for at, step in enumerate(self.analysis.steps):
            state = "warm-up" if step.state == "clean" and at < _WARM_UP else step.state
            stays = state == "clean" or (state == "warm-up" and self.ranges)
            if self.has(step.step):
                yield at, step, "" if stays else state


def _stages(step: Step, role: str) -> dict[str, float]:
    return {stage.name: stage.seconds for stage in step.frontier if stage.role == role}
