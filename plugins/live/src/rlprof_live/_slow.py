"""Slow steps ask for a recording of the next one by themselves, a bounded number of times.

A step is slow if it took longer than so many times the median of those before it. What a step that
is recorded takes says nothing, for recording takes time of its own.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import TYPE_CHECKING

from rlprof_live import control

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlprof.config import Config, SlowStep
    from rlprof.rundir import RawSpan
    from rlprof.session._track import Track

_KEPT = 50
"""Steps that the median is taken of: long runs change their pace."""
_LEAST = 5
"""Before so many steps there is no pace to compare with: the first ones compile and warm up."""
_LEAST_S = 0.1
"""A step that took so little longer than usual is not worth a recording."""


class SlowSteps:
    """Watches how long steps take."""

    def __init__(self, rule: SlowStep) -> None:
        self._times = rule.times
        self._left = rule.most
        self._took: deque[float] = deque(maxlen=_KEPT)
        self._found: deque[str] = deque()

    def see(self, raw: RawSpan, tracks: Iterable[Track]) -> None:
        """Take the span of a step, unless something was recorded in it."""
        _, _, start, end, step, _, _, _, _, _ = raw
        if step is None:
            return
        windows = {window for track in tracks for window in tuple(track.recorded)}
        if not any(window.start_step <= step < window.end_step for window in windows):
            self.ended(step, (end - start) / 1e9)

    def ended(self, step: int, seconds: float) -> None:
        """Take the time of a step that was not recorded."""
        if len(self._took) >= _LEAST and self._left > 0:
            usual = median(self._took)
            if seconds > self._times * usual and seconds - usual > _LEAST_S:
                self._left -= 1
                self._found.append(
                    f"step {step} took {seconds:.3g} s, {seconds / usual:.1f} times the median of "
                    f"{usual:.3g} s"
                )
        self._took.append(seconds)

    def requests(self, config: Config) -> Iterator[control.Request]:
        """Ask for the next step of each role after a slow one."""
        while self._found:
            why = self._found.popleft()
            for name, role in config.roles.items():
                yield control.Request(control.new_id(), name, ranks=role.ranks, by=f"rlprof: {why}")
