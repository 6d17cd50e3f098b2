"""One target of a session: its schedule, and its windows, one at a time.

The process is one target, each attached engine another; neither waits for the other's windows.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Demand, Schedule
    from rlprof.session._context import Context
    from rlprof.session._demands import Demands
    from rlprof.session._instruments import Instruments, OpenWindow
    from rlprof.session._scope import Scope
    from rlprof.types import Target, Window


class Track:
    """The recorders of one target, and its open window."""

    def __init__(
        self, target: Target, own: Schedule, context: Context, instruments: Instruments, *,
        ranks: tuple[int, ...] = (), kinds: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.target = target
        self.ranks = ranks or (target.rank,)
        """The global ranks it holds."""
        self.kinds = kinds or ("tool" if instruments.link is None else "engine",)
        """The kinds of plugins that record it."""
        self.own = own
        """Its schedule."""
        self.link = instruments.link
        self.keys = instruments.keys
        """Returns the fields that name it, or those of a demand, in a manifest line."""
        self._context = context
        self._uses: Sequence[ToolUse] = ()
        self.instruments = instruments
        self.opened: OpenWindow | None = None
        """Its window, until the phase or step of it ends."""
        self._edge = threading.RLock()  # taken where a window may open or close, never idle
        self._rule = own
        """The schedule of the current step: its own, or that of the demand that rules the step."""
        self.demand: Demand | None = None
        self._demanded: Sequence[ToolUse] = ()
        """The plugins that the demand asks for."""
        self.demands: Demands | None = None
        """None: nothing was asked of it."""
        self._due_step: int | None = None
        """The current step, if it is one to record."""
        self.recorded: set[Window] = set()
        """The windows that were opened."""
        self.captured_step: int | None = None
        """The latest step that was recorded, or whose reason for not being recorded is known."""
        self.first_step: int | None = None
        self.last_step: int | None = None
        self.highest_step = -1
        self.reached = False
        """Whether a step of its own schedule has begun."""
        self.has_ended = False
        """Whether it has ended; False if a signal cut the end short."""

    def adopt(self, uses: Sequence[ToolUse]) -> None:
        """Take the plugins that record this target by its schedule, and let them warm up."""
        self._uses = uses
        self.instruments.warm_up(uses)

    @property
    def waiting(self) -> tuple[Demand, ...]:
        """The demands that still need steps."""
        return () if self.demands is None else self.demands.waiting

    @property
    def is_idle(self) -> bool:
        """Whether no window is open, and none can open in this step."""
        return self.opened is None and self._due_step is None

    @property
    def is_recording(self) -> bool:
        """Whether a window is open and its tools record."""
        return self.opened is not None and self.opened.is_recording

    def end_step(self, step: int, phases: Iterable[str], *, is_cut: bool = False) -> None:
        """Note why nothing was recorded of *step*, if training *is_cut* short, and its demands."""
        if len(self.instruments) and step in self._rule.steps and self.captured_step != step:
            still = "" if self.opened is None else self.opened.window.id
            is_new = self.last_step is None
            why = self._rule.why_unrecorded(phases, still_open=still, is_new=is_new)
            self._skip(step, f"training left its loop in this step: {why}" if is_cut else why)
        demand, self.demand = self.demand, None
        if demand is not None and self.demands is not None:
            self.demands.end_step(step, demand)

    def begin_step(self, step: int) -> None:
        """Close the window that ended before *step*, and open the one that begins with it."""
        self.check_time()
        opened = self.opened
        if opened is not None and opened.owner is not None and self._is_over(opened.owner):
            self.close_for(opened.owner)  # a signal handler has raised in it
        elif opened is not None and opened.owner is None:
            if opened.window.start_step <= step < opened.window.end_step:
                self.captured_step = step
            else:
                self.close_window("end")
        is_busy = self.opened is not None
        self._rule, self.demand = self.own, None
        if self.demands is not None and not is_busy and step not in self.own.steps:
            self.demand, self._demanded = self.demands.begin_step(step)
        if self.demand is not None:
            self._rule = self.demand.schedule(step)
            self.instruments.warm_up(self._demanded)
        self._due_step = step if step in self._rule.steps else None
        self.reached = self.reached or (self._due_step is not None and self.demand is None)
        self.first_step = step if self.first_step is None else self.first_step
        self.highest_step = max(step, self.highest_step)
        self.last_step = step
        if not is_busy:
            self._open_due(self._rule.at_step(step), None)

    def end_steps(self) -> None:
        """Close the window of the steps that have ended."""
        if self.opened is not None and self.opened.owner is None:
            self.close_window("end")

    def enter(self, scope: Scope) -> None:
        """Open the phase's window if one is due, and its range if one is open."""
        # What opens away from this thread and is not open by now could not be opened.
        if self.opened is not None:
            self.check_time()
        elif not (scope.is_async and self.opens_away(scope)):
            window = self._rule.at_phase(scope.step, scope.name, scope.occurrence)
            self._open_due(window, scope)
        if self.opened is not None and self.opened.is_recording:
            self.opened.push(scope)

    def leave(self, scope: Scope) -> None:
        """Close the phase's range, and its window if it has one."""
        if self.opened is None:
            return
        self.pop(scope)
        if self._is_over(scope):
            self.close_for(scope)

    def pop(self, scope: Scope) -> None:
        """Close the phase's range."""
        if self.opened is not None and self.opened.is_recording:
            self.opened.pop(scope)

    def opens_away(self, scope: Scope) -> bool:  # noqa: ARG002 -- as closes_away
        """Whether the phase may open a window of an engine, on any thread."""
        is_due = self.link is not None and self.opened is None and self._due_step is not None
        return is_due and not self.instruments.need_their_thread

    def closes_away(self, scope: Scope) -> bool:
        """Whether the phase closes a window of an engine, on any thread."""
        is_mine = self.link is not None and self.opened is not None and self.opened.owner is scope
        return is_mine and not self.instruments.need_their_thread

    def open_for(self, scope: Scope) -> None:
        """Open the phase's window, if one is due."""
        if not scope.is_cancelled:
            window = self._rule.at_phase(scope.step, scope.name, scope.occurrence)
            self._open_due(window, scope)
        if scope.is_cancelled:  # meanwhile
            self.close_for(scope)

    def close_for(self, scope: Scope) -> None:
        """Close the window, if it is that of the phase."""
        if self.opened is not None and self.opened.owner is scope:
            self.close_window("end" if scope.end_ns else "its phase was never entered")

    def _is_over(self, scope: Scope) -> bool:
        """Whether the phase is over, and no other thread is about to close its window."""
        return not scope.is_open and not (scope.is_async and self.closes_away(scope))

    def minibatch(self) -> None:
        """Mark the next mini-batch in the recordings."""
        if self.opened is not None and self.opened.is_recording:
            self.opened.minibatch()
            self.check_time()

    # Windows

    def open_window(
        self, window: Window, uses: Sequence[ToolUse] | None, demand: Demand | None
    ) -> str:
        """Open *window*, as another process decided; return why not, or nothing."""
        if uses is not None:
            uses = [use for use in uses if use.kind in self.kinds]
            self.instruments.take(uses)
        if self.opened is not None:
            return f"the window {self.opened.window.id} was still open"
        if window in self.recorded:
            return f"the window {window.id} was recorded before"
        chosen = self._uses if uses is None else uses
        why = self.instruments.why_full if chosen else ""
        if chosen and not why:
            self._begin(window, chosen, demand, None)
        return why

    def _open_due(self, window: Window | None, owner: Scope | None) -> None:
        """Open *window*, or say why that cannot be."""
        uses = self._uses if self.demand is None else self._demanded
        if window is None or (self.instruments.needs_tools and not uses):
            return
        self.captured_step = window.start_step
        why = self.instruments.why_full or self.instruments.why_not_ready()
        if why:
            self._skip(window.start_step, why)
            return
        while window in self.recorded:  # a step that comes again, after a rollback
            window = attrs.evolve(window, occurrence=window.occurrence + 1)
        self._begin(window, uses, self.demand, owner)

    def _skip(self, step: int, reason: str) -> None:
        """Say why nothing was recorded of *step*."""
        request = {} if self.demand is None else {"request": self.demand.id}
        for key in self.keys(self.demand):
            self._context.scribe.record("skipped", **key, step=step, reason=reason, **request)
        self._context.boundary.warn("skipped", f"step {step}: {reason}")

    def _begin(
        self, window: Window, uses: Sequence[ToolUse], demand: Demand | None, owner: Scope | None
    ) -> None:
        with self._edge:
            if self.opened is not None or self.has_ended:
                return
            self.recorded.add(window)
            self.opened = opened = self.instruments.prepared(uses, window, demand)
            opened.owner = owner
            self._context.scribe.clock()
            self._context.scribe.flush()
            opened.begin()
            for start in opened.starts:
                start()
            self._context.listeners.hear(
                "window_opened", window=window, target=self.target, tools=opened.tools
            )

    def close_window(self, reason: str, *, now: bool = False) -> None:
        """Stop the recorders; the helper thread does what needs the run folder.

        A tool that must be stopped on its thread continues until that comes by, unless *now*.
        """
        # On the loop it needs, an edge that goes on would never end: whose it is closes, too.
        needs_this_loop = self.link is not None and self.instruments.need_this_loop
        if not self._edge.acquire(blocking=not needs_this_loop):
            return
        try:
            opened = self.opened
            if opened is None:
                return
            if opened.is_recording and not now and not opened.may_stop_here:
                opened.ends = reason
                return
            self.opened = None
            opened.stop(reason)
            self._context.listeners.hear(
                "window_closed", window=opened.window, target=self.target, tools=opened.tools,
                reason=reason,
            )  # fmt: skip
        finally:
            self._edge.release()

    def check_time(self) -> None:
        """Close a window that has ended or is too old, if this thread may; the helper asks, too."""
        self.instruments.watch()
        opened, window_s = self.opened, self._context.limits.window_s
        if opened is None or not opened.may_stop_here:
            return
        if opened.ends:
            self.close_window(opened.ends)
        elif opened.overdue(window_s):
            with self._edge:
                opened.stop(f"limits.window_s {window_s:g} was reached")

    def retire(self) -> None:
        """Close the open window, note the demands that were not served, and end; once."""
        if self.has_ended:
            return
        try:
            with ExitStack() as stack:  # strict passes on what stop raises, and still loses nothing
                stack.callback(self.instruments.end)
                if self.demands is not None:
                    stack.callback(self.demands.close)
                if self.opened is not None:
                    ends_here = self.opened.owner is None or self.opened.ends
                    reason = "end" if ends_here else "the session was closed"
                    self.close_window(reason, now=True)
        except Exception:  # strict
            self.has_ended = True
            raise
        self.has_ended = True
