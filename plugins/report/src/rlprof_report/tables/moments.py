"""Which step was running, for spans of processes that know no step, such as a fleet's actors."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from rlprof_report._figures.timeline import timeline_of
from rlprof_report._spans import read_recorded

if TYPE_CHECKING:
    from rlprof.rundir import Run, Span


class Moments:
    """The steps of the process that leads, read when the first span asks for one."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def step_of(self, span: Span) -> int | None:
        """Return the step *span* names, else the one it began in."""
        if span.step is not None:
            return span.step
        numbers, starts, ends = self._steps
        place = bisect_right(starts, span.start_ns) - 1
        return numbers[place] if place >= 0 and span.start_ns < ends[place] else None

    @cached_property
    def _steps(self) -> tuple[list[int], list[int], list[int]]:
        timeline = timeline_of(read_recorded(self._run))
        if timeline is None:
            return [], [], []
        return timeline.numbers.tolist(), timeline.starts.tolist(), timeline.ends.tolist()
