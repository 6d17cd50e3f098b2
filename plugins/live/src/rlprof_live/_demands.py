"""The demands on the tracks of a session, which serve them step by step."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Demand
    from rlprof.session._session import Session
    from rlprof.session._track import Track


class Asker:
    """Asks the tracks of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asking = threading.Lock()

    def ask(self, asked: Iterable[tuple[Track, Demand, Sequence[ToolUse]]]) -> None:
        """Ask tracks to record upcoming steps; all start with the same one, the next to begin."""
        with self._asking:
            for track, demand, uses in asked:
                if not isinstance(track.demands, Demands):
                    track.demands = Demands(self._session, track)
                track.demands.ask(demand, uses)
        self._session.at_step.append(self._take)

    def _take(self) -> None:
        """Queue the demands on all tracks: later demands wait for the next step."""
        with self._asking:
            for track in self._session.tracks:
                if isinstance(track.demands, Demands):
                    track.demands.take()


def too_late(demand: Demand, now: int | None) -> str:
    """Return why its first step can no longer be recorded at step *now*; empty: it can."""
    if not demand.first or now is None or now < demand.first:
        return ""
    if now == demand.first:
        return f"step {now} has begun already"
    return f"step {demand.first} is over; the run is at step {now}"


class Demands:
    """What was asked of one target; each step that no schedule chooses serves the oldest demand.

    Only one demand rules a step, so their windows never overlap.
    """

    def __init__(self, session: Session, track: Track) -> None:
        self._session = session
        self._track = track
        self._asked: dict[str, Sequence[ToolUse]] = {}
        self._served: dict[str, list[int]] = {}
        self._came: deque[Demand] = deque()
        """Demands from another thread, until the next step begins."""
        self._queue: list[tuple[Demand, int]] = []
        """The others, oldest first, and how many steps each still needs."""
        self._unbegun: dict[str, Demand] = {}
        """Demands without a step: code that takes one out begins, refuses or cancels it."""
        self._cancelled: set[str] = set()
        self._is_closed = False

    @property
    def waiting(self) -> tuple[Demand, ...]:
        """The demands that still need steps."""
        every = (*(demand for demand, _ in tuple(self._queue)), *tuple(self._came))
        return tuple(demand for demand in every if demand.id not in self._cancelled)

    def ask(self, demand: Demand, uses: Sequence[ToolUse]) -> None:
        """Take a demand, from any thread; its first step begins after this."""
        self._asked[demand.id] = uses
        self._unbegun[demand.id] = demand
        self._came.append(demand)

    def cancel(self, name: str, why: str) -> None:
        """Drop a demand that no step has begun for, from any thread; others go on."""
        demand = self._unbegun.pop(name, None)
        if demand is not None:
            self._cancelled.add(name)
            self._answer(demand, error=why)

    def take(self) -> None:
        """Queue the demands that arrived: the next step is about to begin."""
        while self._came:
            demand = self._came.popleft()
            late = too_late(demand, self._track.last_step)  # another rank may be past it, too
            if late:
                self.cancel(demand.id, late)
            else:
                self._queue.append((demand, demand.count))

    def begin_step(self, step: int) -> tuple[Demand | None, Sequence[ToolUse]]:
        """Return the demand that rules *step*, if there is one, and what records it."""
        if self._cancelled:
            self._queue = [one for one in self._queue if one[0].id not in self._cancelled]
        for place, (demand, left) in enumerate(self._queue):
            if step >= demand.first and (left < demand.count or self._begins(demand)):
                self._queue[place : place + 1] = [(demand, left - 1)] if left > 1 else []
                self._served.setdefault(demand.id, [])
                return demand, self._asked[demand.id]
        return None, ()

    def _begins(self, demand: Demand) -> bool:
        return self._unbegun.pop(demand.id, None) is not None  # else it was cancelled

    def end_step(self, step: int, demand: Demand) -> None:
        """Count *step* for the *demand* that ruled it."""
        self._served[demand.id].append(step)
        if demand not in self.waiting:
            self._answer(demand)

    def close(self) -> None:
        """Report which demands are left, once."""
        waiting, self._is_closed = () if self._is_closed else self.waiting, True
        for demand in waiting:
            self._answer(demand, error="the session was closed")

    def _answer(self, demand: Demand, error: str = "") -> None:
        steps = self._served.pop(demand.id, [])
        for key in self._track.keys(demand):
            self._session.write("served", **key, request=demand.id, steps=steps, error=error)
