"""The members of one role: what records for the driver's track of that role.

All are asked at once, and each has its own deadline. Who is gone, does not answer, or answers that
it could not, is named in the driver's manifest; the others go on, and so does the step.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import CaptureError
from rlprof_ray._tie import CUT
from rlprof_ray._window import FarWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof.config import ToolUse
    from rlprof.types import Window
    from rlprof_ray._inside import Answer
    from rlprof_ray._member import Ask, Member

_NOW = 0.0


class Crew:
    """Asks the members of a role, and keeps what they have answered."""

    def __init__(self, role: str, means: Any, config: Mapping[str, Any]) -> None:
        self.role = role
        self.members: list[Member] = []
        self.tools: tuple[str, ...] = ()
        self.means = means
        self._config = config
        self._asks: list[Ask] = []
        self._missed: list[str] = []

    def __len__(self) -> int:
        return len(self.members)

    # What the driver's track calls

    def take(self, uses: Sequence[ToolUse]) -> None:
        """Know the names; the members have the tools."""
        if not self.tools:
            self.tools = tuple(use.name for use in uses)

    def prepared(self, uses: Sequence[ToolUse], window: Window, request: str) -> FarWindow:
        """Return the window that opens on all members."""
        tools = tuple(use.name for use in uses)
        return FarWindow(
            self, window, tools, self._with_options(uses) if request else None, request
        )

    def watch(self) -> None:
        """Take the answers that are there, and name who is late; never waits."""
        self.settle(self._asks, within_s=_NOW)
        if not threading.current_thread().name.startswith("rlprof-"):
            self._raise_missed()

    def end(self) -> None:
        """Wait for what was asked, then have the members close their sessions."""
        limits = self.means.limits
        late = [ask for ask in self._asks if ask.is_late]
        self.settle([ask for ask in self._asks if ask not in late], within_s=limits.stop_timeout_s)
        within_s = limits.export_timeout_s + limits.stop_timeout_s
        asks = [member.leave(within_s) for member in self.members if not member.gone]
        self.ask(asks)
        self.settle([ask for ask in asks if not ask.member.unanswered], within_s=within_s)
        # Who is in doubt has nothing to export yet, and perhaps never will.
        self.settle(self._asks, within_s=limits.stop_timeout_s)
        self._raise_missed()

    # What windows and the fleet call

    def ask(self, asks: Sequence[Ask]) -> None:
        """Remember questions that are on their way."""
        self._asks += asks

    def settle(self, asks: Sequence[Ask], *, within_s: float) -> None:
        """Take answers for up to *within_s*; who has not answered by its deadline is named once."""
        import ray

        until = time.monotonic() + within_s
        waited = self._reachable(asks)
        while waited:
            left = max(0.0, until - time.monotonic())
            refs = [ask.ref for ask in waited]
            done, _ = ray.wait(refs, num_returns=len(refs), timeout=left)
            there = set(done)
            for ask in [ask for ask in waited if ask.ref in there]:
                waited.remove(ask)
                self._asks = [other for other in self._asks if other is not ask]
                self._take(ask)
            if left <= 0:
                break
        now = time.monotonic()
        for ask in waited:
            if now > ask.deadline and not ask.is_late:
                ask.is_late = True
                ask.member.unanswered = ask.what
                limit = f"{ask.what}_timeout_s" if ask.what != "close" else "export_timeout_s"
                self.miss(ask.member, ask.window, ask.what, f"was not answered within {limit}")

    def _reachable(self, asks: Sequence[Ask]) -> list[Ask]:
        """Return those of *asks* that Ray can still be asked about; name the others."""
        cut = [ask for ask in asks if ask.member.gone == CUT]
        self._asks = [ask for ask in self._asks if ask not in cut]
        for ask in cut:
            self.miss(ask.member, ask.window, ask.what, f"was not answered: {CUT}")
        return [ask for ask in asks if ask not in cut]

    def miss(
        self, member: Member, window: Window | None, hook: str, error: str,
        tools: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """Say in the manifest what a member has not done."""
        target = attrs.asdict(member.hello.target)
        for tool in tools or self.tools:
            if window is not None:
                key = {"target": target, "window": attrs.asdict(window), "tool": tool}
                self.means.scribe.tell("missed", **key, hook=hook, error=error)
            elif hook == "configure":
                self.means.scribe.tell("configured", target=target, tool=tool, error=error)
        self.means.boundary.tell(f"{member.name}.{hook}", error)
        if self.means.boundary.strict:
            self._missed.append(f"{member.name}: {hook}: {error}")

    def _raise_missed(self) -> None:
        """Raise, in the driver and once, what members have failed at; only strict keeps that."""
        missed, self._missed = self._missed, []
        if missed:
            raise CaptureError("; ".join(missed))

    def _take(self, ask: Ask) -> None:
        import ray

        member = ask.member
        if member.unanswered == ask.what:
            member.unanswered = ""
        try:
            answer: Answer = ray.get(ask.ref)
        except ray.exceptions.RayActorError as exc:
            words = str(exc).strip().splitlines() or [type(exc).__name__]
            if not isinstance(exc, ray.exceptions.ActorUnavailableError):
                member.gone = f"the actor is gone: {type(exc).__name__}: {words[0]}"
            if ask.what != "close":
                self.miss(member, ask.window, ask.what, f"{type(exc).__name__}: {words[0]}")
            return
        except Exception as exc:  # what came of it there, or on the way; the others go on
            cause = getattr(exc, "cause", None) or exc
            self.miss(member, ask.window, ask.what, f"{type(cause).__name__}: {cause}"[:500])
            return
        if answer.is_new:  # it was restarted: the next window finds it ready
            self.ask([member.enter(self.means.limits.configure_timeout_s)])
        if answer.why_not:
            self.miss(member, ask.window, ask.what, answer.why_not)

    def _with_options(self, uses: Sequence[ToolUse]) -> Mapping[str, Any]:
        """Write the config that a request is; the members check it like any."""
        own = dict(self._config["roles"][self.role])
        own.pop("tool", None)
        options = {use.name: dict(use.asked) for use in uses}
        own |= {"tool": [use.name for use in uses if use.kind == "tool"], "options": options}
        return {**self._config, "roles": {**self._config["roles"], self.role: own}}
