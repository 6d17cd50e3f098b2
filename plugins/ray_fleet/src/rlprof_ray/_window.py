"""A window that is open on the members of a role: what the driver's track holds of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from rlprof_ray import _inside
from rlprof_ray._inside import Wanted
from rlprof_ray._member import order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof.types import Window
    from rlprof_ray._member import Ask, Member


class Asker(Protocol):
    """What a window needs of the crew of its role."""

    means: Any

    def enter(self, members: Sequence[Member]) -> None:
        """Have those follow that do not yet."""

    def ask(self, asks: Sequence[Ask]) -> None:
        """Remember questions that are on their way."""

    def settle(self, asks: Sequence[Ask], *, within_s: float) -> None:
        """Take answers for up to *within_s*."""

    def miss(
        self, member: Member, window: Window | None, hook: str, error: str, tools: Sequence[str]
    ) -> None:
        """Say in the manifest what a member has not done."""


class FarWindow:
    """Opened on all members at once, and closed on all at once."""

    ends = ""
    may_stop_here = True

    def __init__(
        self,
        crew: Asker,
        members: Sequence[Member],
        window: Window,
        tools: tuple[str, ...],
        *,
        config: Mapping[str, Any] | None,
        request: str,
    ) -> None:
        self.window = window
        self.owner: Any = None
        self.is_recording = False
        self._crew = crew
        self._run = str(crew.means.run.path)
        self._wanted = members
        self._tools = tools
        self._config = config
        self._request = request
        self._members: list[Member] = []
        """Those of them that were asked to begin."""
        self._entered: set[int] = set()
        """Phases that members were told to enter, and not yet to leave."""
        self._began = 0.0

    def start(self) -> None:
        """Ask all that can be asked; wait for those whose calls have no order."""
        limits = self._crew.means.limits
        self.is_recording = True
        self._began = time.monotonic()
        phases = () if self.owner is None else (self.owner.name,)
        wanted = Wanted(self.window, phases, self._config, self._request)
        how = order(_inside.begin, self._run, wanted)
        asks: list[Ask] = []
        self._crew.enter(self._wanted)
        for member in self._wanted:
            why = self._why_not(member)
            if why:
                self._crew.miss(member, self.window, "start", why, self._tools)
                continue
            if member.window is not None:  # known under another role, and recorded there
                continue
            self._members.append(member)
            asks.append(member.begin(self.window, how, limits.start_timeout_s))
        self._crew.ask(asks)
        unordered = [ask for ask in asks if not ask.member.is_ordered]
        self._crew.settle(unordered, within_s=limits.start_timeout_s)

    def stop(self, reason: str) -> None:
        """Ask all; nobody waits here for a tool to stop."""
        if not self.is_recording:
            return
        self.is_recording = False
        limits = self._crew.means.limits
        how = order(_inside.end, self._run, self.window, reason)
        asks = [
            member.end(self.window, how, limits.stop_timeout_s)
            for member in self._members
            if not member.gone
        ]
        self._crew.ask(asks)
        if not self._tools:  # what begins now must not have this step; a round trip, no more
            unordered = [ask for ask in asks if not ask.member.is_ordered]
            self._crew.settle(unordered, within_s=limits.start_timeout_s)

    def overdue(self, window_s: float) -> bool:
        """Whether it has been recording for longer than *window_s*."""
        return self.is_recording and time.monotonic() - self._began > window_s

    def push(self, scope: Any) -> None:
        """Have the members enter a phase; the window's own they have entered with it."""
        if scope is not self.owner:
            self._entered.add(scope.id)
            self._tell(order(_inside.push, self._run, scope.name, scope.step, scope.id))

    def pop(self, scope: Any) -> None:
        """Have them leave it, if they have entered it."""
        if scope.id in self._entered:
            self._entered.discard(scope.id)
            self._tell(order(_inside.pop, self._run, scope.id))

    def _tell(self, what: bytes) -> None:
        for member in self._members:
            member.tell(what)

    def minibatch(self) -> None:
        """Mini-batches are the members' own: they know when one has ended."""

    def _why_not(self, member: Member) -> str:
        if member.gone:
            return f"not started: {member.gone}"
        if member.unanswered:
            return f"not started: its {member.unanswered} was not answered yet"
        return ""
