"""The members of one role, which record for the driver's track of that role.

All are asked at once, each with a deadline. The driver's manifest names members that are gone, do
not answer or report a failure; the others continue, and so does the step.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import CaptureError, one_line
from rlprof_ray._member import all_of, in_short
from rlprof_ray._tie import CUT
from rlprof_ray._window import FarWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlprof import Session, Window
    from rlprof.config import ToolUse
    from rlprof.schedule import Demand
    from rlprof_ray._member import Ask, Member
    from rlprof_ray._messages import Answer
    from rlprof_ray._post import Post
    from rlprof_run import Place

_BUSY_S = 30.0
"""How long closing waits for the work of a member that records nothing."""
_DOUBT_S = 5.0
"""How long closing waits for members that did not answer before."""
_LOG_S = 10.0
"""How often it says for which members it waits."""
_LATE_S = 0.25
"""A member that begins or ends a window later than this is noted as late."""


class Crew:
    """Asks the members of a role, and keeps their answers."""

    def __init__(self, role: str, session: Session, places: set[Place]) -> None:
        self.role = role
        self.posts: list[Post] = []
        self.former: list[Member] = []
        """Members whose ranks other members have now."""
        self.tools: tuple[str, ...] = ()
        self._places = places
        """Folders other than the run folder in which members write; of all roles."""
        self.session = session
        self._asks: dict[Ask, None] = {}
        """Questions without an answer yet, in order."""
        self._requests: dict[str, str] = {}
        """Window → the request that asked for it."""
        self._missed: list[str] = []
        self._windows = 0
        self._turn = threading.Lock()  # the helper thread takes answers, too

    # Called by the driver's track

    def take(self, uses: Sequence[ToolUse]) -> None:
        """Take the names; the members have the tools."""
        if not self.tools:
            self.tools = tuple(use.name for use in uses)

    def keys(self, demand: Demand | None) -> list[dict[str, Any]]:
        """Name the subject of lines about the role, or about a demand."""
        return [
            {"target": attrs.asdict(post.member.target)}
            for post in self.posts
            if post.includes(demand)
        ]

    def prepared(self, uses: Sequence[ToolUse], window: Window, demand: Demand | None) -> FarWindow:
        """Return the window that opens on all chosen members."""
        tools = tuple(use.name for use in uses)
        members = [post.member for post in self.posts if post.includes(demand)]
        config = None if demand is None else self._with_options(uses)
        self._windows += 1
        request = self._requests[window.id] = "" if demand is None else demand.id
        return FarWindow(self, members, tools, window, config=config, request=request)

    @property
    def why_full(self) -> str:
        """Why no further window may open; empty while a chosen member has bytes left."""
        reasons = [post.member.why_full for post in self.posts if post.is_chosen]
        return reasons[0] if reasons and all(reasons) else ""

    def watch(self) -> None:
        """Take the answers that have arrived, and name late members; never wait."""
        self.settle(within_s=0)
        if not threading.current_thread().name.startswith("rlprof-"):
            self._raise_missed()

    def end(self) -> None:
        """Wait for open questions, then ask the members to close their sessions."""
        limits = self.session.config.limits
        soon = [ask for ask in list(self._asks) if not ask.is_late]
        self._wait(soon, limits.stop_timeout_s)
        exports_s = limits.export_timeout_s * max(1, self._windows)  # each has its own time
        within_s = exports_s + limits.stop_timeout_s
        everyone = self._to_dismiss([*self.former, *(post.member for post in self.posts)])
        pings = [member.ping(_BUSY_S) for member in everyone if not member.unanswered]
        self.ask(pings)
        self._wait(pings, _BUSY_S)
        self.dismiss(everyone, within_s)
        leaving = [ask for ask in list(self._asks) if ask.what == "close"]
        self._wait([ask for ask in leaving if not ask.member.unanswered], within_s)
        # A member in doubt has nothing to export yet, and perhaps never will.
        self._wait(list(self._asks), _DOUBT_S)
        self._raise_missed()

    def _wait(self, asks: Sequence[Ask], within_s: float) -> None:
        """Settle *asks*, and log now and then which members have not answered."""
        end = time.monotonic() + within_s
        while asks:
            left_s = end - time.monotonic()
            self.settle(asks, within_s=min(max(0.0, left_s), _LOG_S))
            asks = [ask for ask in asks if ask in self._asks and not ask.is_late and left_s > 0]
            if asks and left_s > _LOG_S:
                who = ", ".join(dict.fromkeys(str(ask.member.target) for ask in asks))
                waits = f"waits up to {left_s - _LOG_S:.0f} s more for an answer of {one_line(who)}"
                self.session.log(waits, logging.WARNING)

    # Called by windows and the fleet

    @property
    def ranks(self) -> tuple[int, ...]:
        """The global ranks its members hold."""
        return tuple(rank for post in self.posts for rank in post.ranks)

    def post(self, post: Post) -> None:
        """Take a member, in the place of one that had its ranks before."""
        stay = [other for other in self.posts if other.ranks != post.ranks]
        self.former += [other.member for other in self.posts if other not in stay]
        self.posts = [*stay, post]

    def dismiss(self, members: Iterable[Member], within_s: float) -> None:
        """Ask members with a session to close it, unless they were asked before."""
        self.ask([member.leave(within_s) for member in self._to_dismiss(members)])

    def _to_dismiss(self, members: Iterable[Member]) -> list[Member]:
        once = {member.id: member for member in members if member.has_entered and not member.gone}
        return [member for member in once.values() if not member.is_leaving]

    def enter(self, members: Sequence[Member]) -> None:
        """Ask members to follow that do not yet; each has the time of a tool's warm-up."""
        within_s = self.session.config.limits.configure_timeout_s
        self.ask([
            member.enter(within_s) for member in members if not (member.has_entered or member.gone)
        ])  # fmt: skip

    def expect(self, demands: Sequence[Demand]) -> None:
        """Ask members to follow that demands will need, before their windows open."""
        for demand in demands:
            self.enter([post.member for post in self.posts if post.includes(demand)])

    def ask(self, asks: Sequence[Ask]) -> None:
        """Keep questions that are on their way."""
        with self._turn:
            self._asks.update(dict.fromkeys(asks))

    def settle(self, asks: Sequence[Ask] | None = None, *, within_s: float) -> None:
        """Take answers for up to *within_s*; name each member once that misses its deadline."""
        import ray

        waited = self._reachable(list(self._asks) if asks is None else asks)
        if waited:
            refs = [ask.ref for ask in waited]
            try:
                done, _ = ray.wait(refs, num_returns=len(refs), timeout=max(0.0, within_s))
            except SystemExit as exc:  # Ray's, in place of the one that a signal handler raised
                exc.from_signal = True  # type: ignore[attr-defined]
                raise
            there = set(done)
            answered = [ask for ask in waited if ask.ref in there]
            waited = [ask for ask in waited if ask.ref not in there]
            answers = all_of(answered)
            for ask in answered:
                if self._is_mine_to_take(ask):
                    self._take(ask, answers.get(ask))
        now = time.monotonic()
        for ask in waited:
            if now > ask.deadline and not ask.is_late:
                ask.is_late = True
                ask.member.unanswered = ask.what
                hook = "export" if ask.what == "close" else ask.what
                why = f"was not answered within {hook}_timeout_s"
                if ask.what == "ping":
                    why = f"it is busy or hangs: no answer for {_BUSY_S:g} s, so it is left alone"
                self.miss(ask.member, ask.window, ask.what.replace("ping", "close"), why)

    def _is_mine_to_take(self, ask: Ask) -> bool:
        with self._turn:
            return self._asks.pop(ask, self) is not self

    def _reachable(self, asks: Sequence[Ask]) -> list[Ask]:
        """Return the *asks* that Ray can still answer; report the others."""
        lost = [ask for ask in asks if ask.refused or ask.member.is_cut]
        for ask in lost:
            if self._is_mine_to_take(ask):
                why = ask.refused or f"was not answered: {CUT}"
                self.miss(ask.member, ask.window, ask.what, why)
        return [ask for ask in asks if ask not in lost]

    def miss(
        self, member: Member, window: Window | None, hook: str, error: str,
        tools: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """Note in the manifest what a member failed to do."""
        target = attrs.asdict(member.target)
        for tool in tools or self.tools:
            if window is not None:
                key = {"target": target, "window": attrs.asdict(window), "tool": tool}
                request = self._requests.get(window.id, "")
                about = {"request": request} if request else {}
                self.session.write("missed", **key, hook=hook, error=error, **about)
            elif hook == "configure":
                self.session.write("configured", target=target, tool=tool, error=error)
        if hook == "close" or not (self.tools or tools):  # so no capture can say it
            self.session.write("problem", reason=f"{member.target}: {hook}: {error}")
        self.session.warn(f"{member.target}.{hook}", error)
        if self.session.config.strict:
            self._missed.append(f"{member.target}: {hook}: {error}")

    def _raise_missed(self) -> None:
        """Raise the failures of members, once, in the driver; only strict mode keeps them."""
        missed, self._missed = self._missed, []
        if missed:
            raise CaptureError("; ".join(missed))

    def _take(self, ask: Ask, pickled: bytes | None) -> None:
        import ray

        member = ask.member
        if member.unanswered == ask.what:
            member.unanswered = ""
        try:
            pickled = ray.get(ask.ref) if pickled is None else pickled
            answer: Answer = pickle.loads(pickled)  # noqa: S301 -- as Ray's own answers come
        except ray.exceptions.RayActorError as exc:
            words = in_short(exc)
            if not isinstance(exc, ray.exceptions.ActorUnavailableError):
                words = f"the actor is gone: {words}"
                if not (member.died or member.is_cut):
                    self.session.write("problem", reason=f"{member.target}: {words}")
                member.died = words
            if ask.what != "close":
                self.miss(member, ask.window, ask.what, words)
            return
        except Exception as exc:  # what came of it there, or on the way; the others go on
            self.miss(member, ask.window, ask.what, in_short(getattr(exc, "cause", None) or exc))
            return
        if answer.place is not None:
            self._places.add(answer.place)
            target = attrs.asdict(member.target)
            self.session.write("elsewhere", target=target, **attrs.asdict(answer.place))
        self.session.failed.update(answer.failed)
        if answer.process:
            member.workers[answer.worker] = answer.process
        if answer.is_new:  # it was restarted: the next window finds it ready
            member.has_entered = False
            self.enter([member])
        if ask.what == "configure":
            member.is_on_loop = answer.is_on_loop
            member.is_ordered = member.is_ordered and not answer.has_groups
        elif ask.what == "start":
            member.why_full, member.has_begun = answer.why_full, True
        if answer.why_not:
            self.miss(member, ask.window, ask.what, answer.why_not)
        elif ask.window is not None:
            self._note_if_late(ask, answer)

    def _note_if_late(self, ask: Ask, answer: Answer) -> None:
        """Note how long a member's work kept it from the edge of the window."""
        began_ns = answer.at_ns - ask.member.offset_ns - round(answer.seconds * 1e9)
        late_s = (began_ns - ask.sent_ns) / 1e9
        if ask.window is None or late_s < _LATE_S:
            return
        about = {"window": attrs.asdict(ask.window), "hook": ask.what, "seconds": round(late_s, 3)}
        for tool in self.tools:
            self.session.write("late", target=attrs.asdict(ask.member.target), tool=tool, **about)

    def _with_options(self, uses: Sequence[ToolUse]) -> Mapping[str, Any]:
        """Write a request as a config; the members check it like any."""
        config = self.session.config.as_data()
        own = dict(config["roles"].get(self.role, {}))
        every = [use for one in uses for use in (one, *one.inside)]
        options = {use.name: dict(use.asked) for use in every}
        own |= {"tool": [use.name for use in every if use.kind == "tool"], "options": options}
        return {**config, "roles": {**config["roles"], self.role: own}}
