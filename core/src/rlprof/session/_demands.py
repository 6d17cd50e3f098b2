"""The demands on one target, step by step, and why a demand got nothing."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Agenda, Demand, Schedule
    from rlprof.session._means import Means


def too_late(first: int, now: int | None) -> str:
    """Say why a demand cannot begin with step *first* (0: any) at step *now*; empty: it can."""
    if not first or now is None or now < first:
        return ""
    if now == first:
        return f"step {first} has begun already"
    return f"step {first} is over; the run is at step {now}"


def unrecorded(rule: Schedule, phases: Iterable[str], *, is_new: bool) -> str:
    """Say why nothing was recorded of a step that *rule* chooses, by the *phases* entered.

    *is_new*: no step has begun since the target was added.
    """
    if is_new:
        return "it was attached after the step had begun"
    if rule.mode == "continuous":
        return "its window could not be opened"
    wanted, entered = rule.phases, set(phases)
    if entered and (wanted is None or entered & set(wanted)):
        return "its phases began while another window was open or ended"
    if wanted is None:
        return (
            "the step entered no phase, and discrete mode records phases; mark them with "
            "prof.phase(...), or set mode: continuous"
        )
    seen = ", ".join(sorted(entered)) or "none"
    return f"the step entered none of {', '.join(wanted)}; it entered: {seen}"


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
        self._came: deque[Demand] = deque()
        """Demands from another thread, until the next step begins."""
        self._is_closed = False

    @property
    def waiting(self) -> tuple[Demand, ...]:
        """The demands that still need steps."""
        return (*self._agenda.waiting, *tuple(self._came))

    @property
    def uses(self) -> Sequence[ToolUse]:
        """What records the step for the demand that rules it."""
        return () if self.now is None else self._asked[self.now.id]

    def ask(self, demand: Demand, uses: Sequence[ToolUse]) -> None:
        """Take a demand, from any thread; its first step begins after this."""
        self._asked[demand.id] = uses
        self._came.append(demand)

    def take(self, before: int | None) -> None:
        """Queue the demands that arrived; the next step comes after step *before*."""
        while self._came:
            demand = self._came.popleft()
            late = too_late(demand.first, before)  # another rank may be past it, too
            if late:
                self._answer(demand, error=late)
            else:
                self._agenda.ask(demand)

    def rule(self, step: int, *, is_busy: bool) -> Schedule:
        """Return the schedule of *step*, which begins."""
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
