"""The demands on one target, step by step, and why a step or a demand got nothing."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Demand, Schedule
    from rlprof.session._means import Means


def why_unrecorded(rule: Schedule, phases: Iterable[str], *, still_open: str, is_new: bool) -> str:
    """Say why nothing was recorded of a step that *rule* chooses, by the *phases* entered.

    *still_open* is a window that has not ended; *is_new*: no step has begun since the target was
    added.
    """
    if still_open:
        return f"the window {still_open} was still open"
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
    """What was asked of one target; each step that no schedule chooses serves the oldest demand.

    Only one demand rules a step, so their windows never overlap.
    """

    def __init__(self, means: Means, keys: Callable[[Demand | None], list[dict[str, Any]]]) -> None:
        self._means = means
        self._keys = keys
        self._asked: dict[str, Sequence[ToolUse]] = {}
        self._served: dict[str, list[int]] = {}
        self._came: deque[Demand] = deque()
        """Demands from another thread, until the next step begins."""
        self._queue: list[tuple[Demand, int]] = []
        """The others, oldest first, and how many steps each still needs."""
        self._is_closed = False

    @property
    def waiting(self) -> tuple[Demand, ...]:
        """The demands that still need steps."""
        return (*(demand for demand, _ in tuple(self._queue)), *tuple(self._came))

    def ask(self, demand: Demand, uses: Sequence[ToolUse]) -> None:
        """Take a demand, from any thread; its first step begins after this."""
        self._asked[demand.id] = uses
        self._came.append(demand)

    def take(self, before: int | None) -> None:
        """Queue the demands that arrived; the next step comes after step *before*."""
        while self._came:
            demand = self._came.popleft()
            late = demand.too_late(before)  # another rank may be past it, too
            if late:
                self._answer(demand, error=late)
            else:
                self._queue.append((demand, demand.count))

    def begin_step(self, step: int) -> tuple[Demand | None, Sequence[ToolUse]]:
        """Return the demand that rules *step*, if there is one, and what records it."""
        for place, (demand, left) in enumerate(self._queue):
            if step >= demand.first:
                self._queue[place : place + 1] = [(demand, left - 1)] if left > 1 else []
                self._served.setdefault(demand.id, [])
                return demand, self._asked[demand.id]
        return None, ()

    def end_step(self, step: int, demand: Demand) -> None:
        """Count *step* for the *demand* that ruled it."""
        self._served[demand.id].append(step)
        if demand not in self.waiting:
            self._answer(demand)

    def close(self) -> None:
        """Say which demands are left, once."""
        waiting, self._is_closed = () if self._is_closed else self.waiting, True
        for demand in waiting:
            self._answer(demand, error="the session was closed")

    def _answer(self, demand: Demand, error: str = "") -> None:
        steps = self._served.pop(demand.id, [])
        for key in self._keys(demand):
            self._means.scribe.tell("served", **key, request=demand.id, steps=steps, error=error)
