"""What was asked of one target while the run is live: taken at a step, served, and answered for."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Agenda, Demand, Schedule
    from rlprof.session._means import Means


@attrs.define(eq=False)
class Batch:
    """Demands that one thread hands to many tracks, while another goes through them.

    All tracks of a process take them when the same step begins.
    """

    is_out: bool = False
    """Whether a step has begun since all tracks knew: set before the first of them hears of it."""


_OUT = Batch(is_out=True)
"""Of a demand that no other track has."""


def too_late(first: int, now: int | None) -> str:
    """Say why nothing can begin with step *first* (0: any) at step *now*; empty if it can."""
    if not first or now is None or now < first:
        return ""
    if now == first:
        return f"step {first} has begun already"
    return f"step {first} is over; the run is at step {now}"


class Demands:
    """The demands of one target, and the one that rules the step."""

    def __init__(
        self, agenda: Agenda, means: Means, keys: Callable[[Demand | None], list[dict[str, Any]]]
    ) -> None:
        self.now: Demand | None = None
        """The demand that rules the step; None: the target's own schedule does."""
        self._agenda = agenda
        self._means = means
        self._keys = keys
        self._asked: dict[str, Sequence[ToolUse]] = {}
        self._served: dict[str, list[int]] = {}
        self._came: deque[tuple[Demand, Batch]] = deque()
        """Demands from another thread, until the next step begins."""
        self._is_closed = False

    @property
    def waiting(self) -> tuple[Demand, ...]:
        """The demands that have steps to get."""
        return (*self._agenda.waiting, *(demand for demand, _ in tuple(self._came)))

    @property
    def uses(self) -> Sequence[ToolUse]:
        """What records the step for the demand that rules it."""
        return () if self.now is None else self._asked[self.now.id]

    def ask(self, demand: Demand, uses: Sequence[ToolUse], batch: Batch = _OUT) -> None:
        """Take a demand, from whatever thread; its first step begins after this, and its batch."""
        self._asked[demand.id] = uses
        self._came.append((demand, batch))

    def rule(self, step: int, before: int | None, *, is_busy: bool) -> Schedule:
        """Return what rules *step*, which begins after step *before*."""
        while self._came and self._came[0][1].is_out:
            demand, _ = self._came.popleft()
            late = too_late(demand.first, before)  # another rank may be past it, too
            if late:
                self._answer(demand, error=late)
            else:
                self._agenda.ask(demand)
        rule, self.now = self._agenda.at(step, is_busy=is_busy)
        if self.now is not None:
            self._served.setdefault(self.now.id, [])
        return rule

    def end_step(self, step: int) -> None:
        """Count *step* for the demand that ruled it."""
        demand, self.now = self.now, None
        if demand is not None:
            self._served[demand.id].append(step)
            if demand not in self._agenda.waiting:
                self._answer(demand)

    def skip(self, step: int, reason: str) -> None:
        """Say why nothing was recorded of *step*."""
        said = {} if self.now is None else {"request": self.now.id}
        for key in self._keys(self.now):
            self._means.scribe.tell("skipped", **key, step=step, reason=reason, **said)
        self._means.boundary.tell("skipped", f"step {step}: {reason}")

    def close(self) -> None:
        """Say which demands are left, once."""
        waiting, self._is_closed = () if self._is_closed else self.waiting, True
        for demand in waiting:
            self._answer(demand, error="the session was closed")

    def _answer(self, demand: Demand, error: str = "") -> None:
        steps = self._served.pop(demand.id, [])
        for key in self._keys(demand):
            self._means.scribe.tell("served", **key, request=demand.id, steps=steps, error=error)
