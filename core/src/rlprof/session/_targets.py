"""The targets of a process and their windows, which phases, requests and other processes open."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.schedule import Demand
from rlprof.session._boundary import Guard, survives
from rlprof.session._track import Track

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlprof.config import Config, ToolUse
    from rlprof.schedule import Schedule
    from rlprof.session._context import Context
    from rlprof.session._elsewhere import Members
    from rlprof.session._scope import Scope
    from rlprof.types import Target, Window


class Targets:
    """The targets of a session: the process itself, engines, members of a fleet."""

    def __init__(self, config: Config, context: Context) -> None:
        self.config = config
        self.context = context
        self.boundary = context.boundary
        self.ids = itertools.count(1)
        self.current_step: int | None = None
        self.step_id: int | None = None
        """The span of the step; None where the session is led and has no steps of its own."""
        self.tracks: tuple[Track, ...] = ()
        """The recorded targets: the process itself, and each attached engine."""
        self._occurrences: dict[str, int] = {}
        self._is_closed = False
        self._guard = Guard(context.boundary, "phase")

    @property
    def is_recording(self) -> bool:
        """Whether a window is open in this process."""
        return any(track.is_recording for track in self.tracks)

    @property
    def why_full(self) -> str:
        """Why no target of this process may have a further window; empty if one may."""
        reasons = [track.instruments.why_full for track in self.tracks]
        return reasons[0] if reasons and all(reasons) else ""

    def attach(
        self,
        handle: Any,
        *,
        role: str = "rollout",
        replica: int = 0,
        ranks: Iterable[int] | None = None,
        world_size: int | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        coordinates: Mapping[str, int] | None = None,
    ) -> None:
        """Record a rollout engine from now on, in the windows of *role*.

        *handle* is the engine as the plugin wants it: an object, an address. *ranks* are the
        global ranks it holds, of *world_size*; the default is one rank for each replica. *loop* is
        the event loop of its asynchronous methods. Attach a restarted replica again to replace it.

        Raise ConfigError if the config names no engine for *role*, or cannot work.
        """
        if self._is_closed:
            return
        from rlprof.session._engines import engine_track

        made = engine_track(
            self.config, self.context, handle,
            role=role, replica=replica, ranks=ranks, world_size=world_size, loop=loop,
            coordinates=coordinates,
        )  # fmt: skip
        if made is None:
            return
        track, uses = made
        self.context.scribe.record(
            "attached", target=attrs.asdict(track.target), ranks=list(track.ranks)
        )
        before = [one for one in self.tracks if one.link and one.target == track.target]
        for one in before:
            self.boundary.call("attach", one.retire)
        self.tracks = (*(one for one in self.tracks if one not in before), track)

        with Guard(self.boundary, "attach"):
            track.adopt(uses)

    @survives
    def minibatch(self) -> None:
        """Mark the end of a mini-batch."""
        for track in self.tracks:
            track.minibatch()

    def add(self, track: Track) -> None:
        """Record one more target."""
        self.tracks = (*self.tracks, track)

    # What another process decides, where a session is led

    def open_window(
        self, window: Window, uses: Sequence[ToolUse] | None = None, request: str = ""
    ) -> str:
        """Open *window* on all targets of this process; return why not, or nothing.

        *uses* record it, by default those that the config names; *request* has asked for it.
        """
        if self._is_closed:
            return "its session is closed"
        self.current_step = window.start_step
        self._occurrences = {} if window.phase is None else {window.phase: window.occurrence}
        demand = Demand(request, 1) if request else None
        reasons: list[str] = []
        for track in self.tracks:
            opening = partial(track.open_window, window, uses, demand)
            reasons.append(self.boundary.call("open_window", opening, reasons.append) or "")
        why = "; ".join(filter(None, reasons))
        if why:
            self.current_step = None
        return why

    def go_to(self, step: int) -> None:
        """Take over the number of a step that begins while a window is open."""
        if step != self.current_step:
            self.current_step = step
            self._occurrences = {}

    def close_window(self, reason: str) -> None:
        """Close the window that is open."""
        self.current_step = None
        for track in self.tracks:
            self.boundary.call("close_window", partial(track.close_window, reason))

    def lead(
        self,
        target: Target,
        schedule: Schedule,
        uses: Sequence[ToolUse],
        members: Members,
        *,
        needs_tools: bool = True,
    ) -> Track:
        """Let *members*, other processes, record a role by its *schedule*.

        Without *needs_tools*, windows open even if *uses* name no tool: the members learn the step.
        """
        from rlprof.session._elsewhere import Elsewhere

        elsewhere = Elsewhere(target, self.context, members, needs_tools=needs_tools)
        kinds = ("tool", "engine")
        track = Track(target, schedule, self.context, elsewhere, kinds=kinds)
        track.adopt(uses)
        self.add(track)
        return track

    # Called by scopes

    def count(self, phase: str) -> int:
        """Return how often the step entered *phase* before."""
        before = self._occurrences.get(phase, 0)
        self._occurrences[phase] = before + 1
        return before

    def enter(self, scope: Scope) -> None:
        """Open the windows that are due with a phase, and its range."""
        for track in () if self._is_closed else self.tracks:
            if not track.is_idle:
                with self._guard:
                    track.enter(scope)

    async def open_away(self, scope: Scope) -> None:
        """Open the windows of engines on other threads: they may need this thread's event loop."""
        away = self._away(Track.opens_away, scope)
        if not away:
            return
        from rlprof.session._loops import in_background, start_background

        try:
            await in_background(partial(self._act, one.open_for, scope) for one in away)
        except BaseException:  # cancelled: nobody else would close what is open by now
            scope.is_cancelled = True
            for track in away:
                start_background(partial(self._act, track.close_for, scope))
            raise

    async def close_away(self, scope: Scope) -> None:
        """Close them."""
        away = self._away(Track.closes_away, scope)
        if not away:
            return
        from rlprof.session._loops import in_background

        for track in away:
            self._act(track.pop, scope)
        await in_background(partial(self._act, one.close_for, scope) for one in away)

    def _away(self, goes: Callable[[Track, Scope], bool], scope: Scope) -> list[Track]:
        with self._guard:
            return [] if self._is_closed else [one for one in self.tracks if goes(one, scope)]
        return []

    def _act(self, act: Callable[[Scope], None], scope: Scope) -> None:
        with self._guard:
            act(scope)

    def leave(self, scope: Scope) -> None:
        """Write the span; close its range, and its window if it has one."""
        if self._is_closed:
            return
        self.context.scribe.span((
            "phase" if scope.is_phase else "span", scope.name, scope.start_ns, scope.end_ns,
            scope.step, scope.thread, scope.id, scope.parent, scope.occurrence, scope.written(),
        ))  # fmt: skip
        for track in self.tracks if scope.is_phase else ():
            with self._guard:
                track.leave(scope)
