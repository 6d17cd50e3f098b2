"""A window that is open on the members of a role."""

from __future__ import annotations

import threading
from functools import cache, partial
from time import time_ns
from typing import TYPE_CHECKING, Any

from rlprof_ray import _inside
from rlprof_ray._member import order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof.types import Window
    from rlprof_ray._member import Ask, Member


class FarWindow:
    """A window that opens on all members at once, and closes on all at once."""

    def __init__(
        self, crew: Any, chosen: Sequence[Member], tools: Sequence[str], window: Window, *,
        config: Mapping[str, Any] | None, request: str,
    ) -> None:  # fmt: skip
        """Take the config of the run with the options of a request, and the request, if any."""
        self._crew = crew
        """The `Crew` that asks the members; it makes the windows, so it is not imported here."""
        self._run = str(crew.session.run_dir)
        self._limits = crew.session.config.limits
        self._chosen = chosen
        self._window = window
        self._config, self._request = config, request
        self._tools = tools
        self._members: list[Member] = []
        """Members that were asked to begin."""
        self._entered: set[int] = set()
        """Phases that members were asked to enter but not yet to leave."""

    def start(self) -> None:
        """Ask all members that can be asked; wait for those whose calls have no order."""
        window = self._window
        how = order(_inside.begin, self._run, window, self._config, self._request)
        asks: list[Ask] = []
        self._crew.enter(self._chosen)
        for member in self._chosen:
            late = member.unanswered and f"its {member.unanswered} was not answered yet"
            if why := member.gone or late:
                self._crew.miss(member, window, "start", f"not started: {why}", self._tools)
            elif member.window is None:  # else another role has it, and records it there
                self._members.append(member)
                asks.append(member.begin(window, how, self._limits.start_timeout_s))
        self._crew.ask(asks)
        self._settle_unordered(asks, self._limits.start_timeout_s)

    def stop(self, reason: str) -> None:
        """Ask all; wait only for event loops, where the next call would precede the answer."""
        now_ns, window, within_s = time_ns(), self._window, self._limits.stop_timeout_s

        @cache
        def how(over_ns: int | None, *, is_ordered: bool) -> bytes:
            end = partial(_inside.end, over_ns=over_ns, is_ordered=is_ordered)
            return order(end, self._run, window, reason)

        asks = []
        for member in (one for one in self._members if not one.gone):
            may_be_late = member.boot_id and not member.has_begun  # once its clock was read
            over_ns = now_ns + member.offset_ns if may_be_late else None
            asks.append(member.end(window, how(over_ns, is_ordered=member.is_ordered), within_s))
        self._crew.ask(asks)
        if self._tools:  # the next call of such a member must not be in the window
            on_loop = [ask for ask in asks if ask.member.is_on_loop]
            self._settle_unordered(on_loop, self._limits.stop_timeout_s)
        else:  # what begins now must not have this step; a round trip, no more
            self._settle_unordered(asks, self._limits.start_timeout_s)

    def enter(self, key: int, name: str, step: int | None) -> None:
        """Ask the members to enter a phase."""
        self._entered.add(key)
        self._send(order(_inside.push, self._run, name, step, key))

    def leave(self, key: int) -> None:
        """Ask them to leave it, if they have entered it."""
        if key in self._entered:
            self._entered.discard(key)
            self._send(order(_inside.pop, self._run, key))

    def _settle_unordered(self, asks: Sequence[Ask], within_s: float) -> None:
        if threading.current_thread().name.startswith("rlprof-"):  # it has no call to hold back
            return
        unordered = [ask for ask in asks if not ask.member.is_ordered]
        self._crew.settle(unordered, within_s=within_s)

    def _send(self, what: bytes) -> None:
        for member in self._members:
            member.send(what)
