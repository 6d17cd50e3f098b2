"""The members that died: in which step, and of what, for the manifest."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING

import attrs

from rlprof_ray._calls import accessor

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rlprof import Session
    from rlprof.rundir import RawSpan
    from rlprof.session._track import Track
    from rlprof_ray._member import Member

_MOST_STEPS = 100_000
_SEEN_S = 2.0
_WITHIN_S = 2.5
"""How long closing a fleet waits for Ray's record of all members that died."""


class Deaths:
    """Notes members that died, once each."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._steps: deque[tuple[int, int, int]] = deque(maxlen=_MOST_STEPS)
        """When steps began and ended, by the wall clock of the driver, and their numbers."""
        self._noted: set[str] = set()
        self._has_seen = threading.Event()
        self.track: Track | None = None
        """A track of the driver, which knows the last step."""
        session.watch_spans(self._see)

    def note(self, members: Collection[Member]) -> None:
        """Write a line about each of *members* that died; the steps are over."""
        dead = {one.id: one for one in members if one.died and not one.is_cut}
        dead = {name: one for name, one in dead.items() if name not in self._noted}
        if not dead:
            return
        self._noted |= dead.keys()
        ended_ms: dict[str, int] = {}
        asking = threading.Thread(target=_ask, args=(list(dead), ended_ms), daemon=True)
        asking.start()  # a store that is gone would hold the driver for minutes
        asking.join(_WITHIN_S)
        self._see_all(time.monotonic() + _SEEN_S)
        for name, one in dead.items():
            process = next(reversed(one.workers.values()), "")
            target, step = attrs.asdict(one.target), self._step_at(ended_ms.get(name, 0))
            error = one.died.removeprefix("the actor is gone: ")
            self._session.write("died", target=target, process=process, step=step, error=error)

    def _see_all(self, until: float) -> None:
        """Wait for the last step: the helper thread takes up to a second to come to it."""
        last = None if self.track is None else self.track.last_step
        self._has_seen.clear()
        while last is not None and not (self._steps and self._steps[-1][2] == last):
            if not self._has_seen.wait(max(0.0, until - time.monotonic())):
                return
            self._has_seen.clear()

    def _see(self, spans: Sequence[RawSpan]) -> None:
        ahead_ns = time.time_ns() - time.monotonic_ns()
        for kind, _, start_ns, end_ns, step, *_ in spans:
            if kind == "step" and step is not None:
                self._steps.append((start_ns + ahead_ns, end_ns + ahead_ns, step))
        self._has_seen.set()

    def _step_at(self, at_ms: int) -> int | None:
        """Return the step of a time; None: it was in no step, or the time is not known."""
        at_ns, steps = at_ms * 10**6, list(self._steps)
        place = bisect_left(steps, at_ns, key=itemgetter(1))
        if not steps or at_ns < steps[0][0] or place == len(steps):
            return None
        return steps[place][2]


def _ask(actors: Collection[str], ended_ms: dict[str, int]) -> None:
    """Ask Ray's control store when *actors* ended."""
    try:
        import ray
        from ray._private import state
        from ray.core.generated import gcs_pb2

        store = accessor(state.state)
        for name in actors:
            record = store.get_actor_info(ray.ActorID(bytes.fromhex(name)))
            if record:
                ended_ms[name] = gcs_pb2.ActorTableData.FromString(record).end_time
    except Exception:  # Ray has no public name for it: without it, the step is not known
        return
