"""How long members wait for the slowest of them, step by step: a figure for a logger.

The number is that of the report: for each role and phase, the slowest member less the median of the
others. If members meet inside a phase, their times say nothing, and the phase is left out.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof import Target

_MOST_STEPS = 10_000
"""Steps that wait for the next read of Ray's record; that may take a while."""


class Waits:
    """Takes what each member did in each phase, until its step has ended."""

    def __init__(self) -> None:
        self._steps: dict[int | None, dict[tuple[str, str], dict[int, tuple[int, int]]]] = {}
        """Step → role and phase → rank → ns in all, and the time at which the last part ended."""

    def add(self, step: int | None, phase: str, target: Target, start_ns: int, end_ns: int) -> None:
        """Take a stretch of a phase."""
        number = target.rank if target.replica is None else target.replica
        ranks = self._steps.setdefault(step, {}).setdefault((target.role, phase), {})
        if len(self._steps) > _MOST_STEPS:
            del self._steps[next(iter(self._steps))]
        took, last = ranks.get(number, (0, end_ns))
        ranks[number] = took + end_ns - start_ns, max(last, end_ns)

    def of(self, step: int | None) -> float | None:
        """Return the longest wait of an ended step, and forget it."""
        found = self._steps.pop(step, {})
        waits = [wait for ranks in found.values() if (wait := _wait_ns(ranks)) is not None]
        return max(waits) / 1e9 if waits else None


def _wait_ns(ranks: dict[int, tuple[int, int]]) -> float | None:
    if len(ranks) < 2:
        return None
    took = sorted(one for one, _ in ranks.values())
    ended = [last for _, last in ranks.values()]
    most = took[-1] - median(took)
    do_meet = most > 0 and max(ended) - median(ended) < most / 2
    return None if do_meet else took[-1] - median(took[:-1])
