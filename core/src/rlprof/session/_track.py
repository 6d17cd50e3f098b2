"""One target as a session records it: by its agenda, one window at a time.

The process itself is one; each engine that was attached is another. They share the steps and the
phases, and neither waits for the other's windows.
"""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.session._link import is_on_a_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Agenda, Demand, Schedule
    from rlprof.session._instruments import Instruments
    from rlprof.session._link import Link
    from rlprof.session._means import Means
    from rlprof.session._scope import Scope
    from rlprof.session._window import OpenWindow
    from rlprof.types import Target, Window

_LOOP_S = 0.5
"""How long a loop may stand still for an engine that is nearly ready and may need the loop."""


@attrs.define(eq=False)
class Batch:
    """Demands that one thread hands to many tracks, while another goes through them.

    All tracks of a process take them when the same step begins.
    """

    is_out: bool = False
    """Whether a step has begun since all tracks knew: set before the first of them hears of it."""


_OUT = Batch(is_out=True)
"""Of a demand that no other track has."""


class Track:
    """What is recorded of one target, and the window of it that is open."""

    def __init__(
        self,
        target: Target,
        agenda: Agenda,
        means: Means,
        instruments: Instruments,
        *,
        link: Link | None = None,
        ranks: tuple[int, ...] = (),
        kinds: tuple[str, ...] = (),
    ) -> None:
        self.target = target
        self.ranks = ranks or (target.rank,)
        """The global ranks it holds."""
        self.kinds = kinds or ("tool" if link is None else "engine",)
        """The kinds of plugins that record it."""
        self.agenda = agenda
        self.link = link
        self._means = means
        self._uses: Sequence[ToolUse] = ()
        self._instruments = instruments
        self._open: OpenWindow | None = None
        self._edge = threading.RLock()  # taken where a window may open or close, never idle
        self._rule: Schedule = agenda.own
        self._demand: Demand | None = None
        self._adopting: threading.Thread | None = None
        """The thread on which an engine is made ready."""
        self._due_step: int | None = None
        """The step that is going on, if it is one to record."""
        self._asked: dict[str, Sequence[ToolUse]] = {}
        self._served: dict[str, list[int]] = {}
        self.recorded: set[str] = set()
        """The windows that were opened, by id."""
        self._captured_step: int | None = None
        self._came: deque[tuple[Demand, Batch]] = deque()
        """Demands from another thread, until the next step begins."""
        self.first_step: int | None = None
        self.last_step: int | None = None
        """The step that began last."""
        self.reached = False
        """Whether a step of its own schedule has begun."""
        self._has_told = False
        """Whether it was said which demands will not be served."""
        self.needs_tools = True
        """False: windows open without a tool, for members that shall know the step."""

    def adopt(self, uses: Sequence[ToolUse]) -> None:
        """Take what records this target by its own schedule, and let it warm up."""
        self._uses = uses
        self._instruments.take(uses)

    def adopt_aside(self, uses: Sequence[ToolUse], adopt: Callable[[], None]) -> None:
        """Do so on another thread; windows wait for it."""
        self._uses = uses
        self._adopting = threading.Thread(target=adopt, name="rlprof-attach", daemon=True)
        self._adopting.start()

    def _make_ready(self, uses: Sequence[ToolUse]) -> None:
        """Let what a request asks for warm up; beside a loop, which its engine may need."""
        take = partial(self._instruments.take, uses)
        if self.link is None or self._instruments.has(uses) or not is_on_a_loop():
            take()
            return
        before = self._adopting

        def adopt() -> None:
            if before is not None:
                before.join()
            self._means.boundary.call("request", take, lambda _: None)

        self._adopting = threading.Thread(target=adopt, name="rlprof-attach", daemon=True)
        self._adopting.start()

    def ask(self, demand: Demand, uses: Sequence[ToolUse], batch: Batch = _OUT) -> None:
        """Take a demand, from whatever thread; its first step begins after this, and its batch."""
        self._asked[demand.id] = uses
        self._came.append((demand, batch))

    def too_late(self, first: int) -> str:
        """Say why nothing can begin with step *first* (0: any) any more; empty if it can."""
        now = self.last_step
        if not first or now is None or now < first:
            return ""
        if now == first:
            return f"step {first} has begun already"
        return f"step {first} is over; the run is at step {now}"

    @property
    def waiting(self) -> tuple[Demand, ...]:
        """The demands that have steps to get."""
        return (*self.agenda.waiting, *(demand for demand, _ in tuple(self._came)))

    @property
    def is_recording(self) -> bool:
        """Whether a window is open and its tools record."""
        return self._open is not None and self._open.is_recording

    @property
    def why_full(self) -> str:
        """Why no further window may open, if the target's share of bytes is used up."""
        return self._instruments.why_full

    def has_captured(self, step: int) -> bool:
        """Whether something of *step* was recorded."""
        return self._captured_step == step

    # Steps and phases

    def end_step(self, step: int, phases: Iterable[str]) -> None:
        """Say why nothing was recorded of *step*, if something was due, and what was served."""
        if len(self._instruments) and step in self._rule.steps and self._captured_step != step:
            self._skip(step, self._why_nothing(phases))
        if self._demand is not None:
            self._served[self._demand.id].append(step)
            if self._demand not in self.agenda.waiting:
                self._tell_served(self._demand)
            self._demand = None

    def begin_step(self, step: int) -> None:
        """Close the window that ended before *step*, and open the one that begins with it."""
        self.check_time()
        opened = self._open
        if opened is not None and opened.owner is not None and self._is_left(opened.owner):
            self.close_window("its phase was never entered")  # a signal handler has raised in it
        elif opened is not None and opened.owner is None:
            if opened.window.start_step <= step < opened.window.end_step:
                self._captured_step = step
            else:
                self.close_window("end")
        is_busy = self._open is not None
        self._take_demands()
        self._rule, self._demand = self.agenda.at(step, is_busy=is_busy)
        if self._demand is not None:
            self._served.setdefault(self._demand.id, [])
            self._make_ready(self._asked[self._demand.id])
        self._due_step = step if step in self._rule.steps else None
        self.reached = self.reached or (self._due_step is not None and self._demand is None)
        self.first_step = step if self.first_step is None else self.first_step
        self.last_step = step
        if not is_busy:
            self._open_window(self._rule.at_step(step), None, step)

    def _take_demands(self) -> None:
        """Move new demands to the agenda; another rank may already be past their first step."""
        while self._came and self._came[0][1].is_out:
            demand, _ = self._came.popleft()
            late = self.too_late(demand.first)
            if late:
                self._tell_served(demand, error=late)
            else:
                self.agenda.ask(demand)

    def end_steps(self) -> None:
        """Close the window of the steps that have ended."""
        if self._open is not None and self._open.owner is None:
            self.close_window("end")

    @property
    def may_open_aside(self) -> bool:
        """Whether the next phase may open a window of an engine, on any thread."""
        is_due = self.link is not None and self._open is None and self._due_step is not None
        return is_due and not self._instruments.need_their_thread

    def open_for(self, scope: Scope) -> None:
        """Open the phase's window, if one is due."""
        window = self._rule.at_phase(scope.step, scope.name, scope.occurrence)
        self._open_window(window, scope, scope.step)

    def enter_phase(self, scope: Scope) -> None:
        """Open the phase's window if one is due, and its range if one is open."""
        if self._open is None:
            if self._due_step is None:
                return  # nearly always
            self.open_for(scope)
        self.push(scope)

    def push(self, scope: Scope) -> None:
        """Open the phase's range if a window is open."""
        self.check_time()
        if self._open is not None and self._open.is_recording:
            self._open.push(scope)

    def leave_phase(self, scope: Scope) -> None:
        """Close the phase's range, and its window if it has one."""
        if self._open is None:
            return
        self.pop(scope)
        if self.is_owned_by(scope) and self._is_left(scope):
            self.close_window("end")

    def pop(self, scope: Scope) -> None:
        """Close the phase's range."""
        if self._open is not None and self._open.is_recording:
            self._open.pop(scope)

    def is_owned_by(self, scope: Scope) -> bool:
        """Whether the open window is that of the phase."""
        return self._open is not None and self._open.owner is scope

    def may_close_aside(self, scope: Scope) -> bool:
        """Whether the phase closes a window of an engine, on any thread."""
        mine = self.link is not None and self.is_owned_by(scope)
        return mine and not self._instruments.need_their_thread

    def _is_left(self, scope: Scope) -> bool:
        """Whether the phase is over, and no thread beside it is about to close its window."""
        return not scope.is_open and not (scope.is_aside and self.may_close_aside(scope))

    def minibatch(self) -> None:
        """Tell the recordings of the next mini-batch."""
        if self._open is not None and self._open.is_recording:
            self._open.minibatch()
            self.check_time()

    # Windows

    def open_window(
        self, window: Window, uses: Sequence[ToolUse] | None, demand: Demand | None
    ) -> str:
        """Open *window*, which another process has decided on; return why not, or nothing."""
        if uses is not None:
            uses = [use for use in uses if use.kind in self.kinds]
            self._instruments.take(uses)
        if self._open is not None:
            return f"the window {self._open.window.id} was still open"
        if window.id in self.recorded:
            return f"the window {window.id} was recorded before"
        chosen = self._uses if uses is None else uses
        if not chosen:
            return ""
        if self.why_full:
            return self.why_full
        self._begin(window, chosen, demand, None)
        return ""

    def _open_window(self, window: Window | None, owner: Scope | None, step: int | None) -> None:
        uses = self._uses if self._demand is None else self._asked[self._demand.id]
        if window is None or (self.needs_tools and not uses):
            return
        if self.why_full:
            self._captured_step = window.start_step
            self._skip(window.start_step, self.why_full)
            return
        if self._adopting is not None and not self._is_ready(self._adopting):
            self._captured_step = window.start_step
            self._skip(window.start_step, "its engine was not ready; enter phases by `async with`")
            return
        while window.id in self.recorded:  # a step that comes again, after a rollback
            window = attrs.evolve(window, occurrence=window.occurrence + 1)
        self._captured_step = step
        self._begin(window, uses, self._demand, owner)

    def _is_ready(self, adopting: threading.Thread) -> bool:
        limits = self._means.limits
        adopting.join(_LOOP_S if is_on_a_loop() else limits.configure_timeout_s)
        if adopting.is_alive():
            return False
        self._adopting = None
        return True

    def _begin(
        self,
        window: Window,
        uses: Sequence[ToolUse],
        demand: Demand | None,
        owner: Scope | None,
    ) -> None:
        with self._edge:
            if self._open is not None:
                return
            self.recorded.add(window.id)
            self._open = self._instruments.prepared(uses, window, demand)
            self._open.owner = owner
            self._means.scribe.clock()
            self._means.scribe.flush()
            self._open.start()
            self._means.listeners.hear("window_opened", **self._said_of(self._open))
            self._means.sampler.hurry()

    def close_window(self, reason: str, *, now: bool = False) -> None:
        """Stop what records; what waits for the run folder is the helper thread's.

        A tool that must be stopped on its own thread goes on until that comes by, unless *now*.
        """
        # On the loop it needs, an edge that goes on would never end: whose it is closes, too.
        needs_this_loop = self.link is not None and self._instruments.need_this_loop
        if not self._edge.acquire(blocking=not needs_this_loop):
            return
        try:
            opened = self._open
            if opened is None:
                return
            if opened.is_recording and not now and not opened.may_stop_here:
                opened.ends = reason
                return
            self._open = None
            opened.stop(reason)
            self._means.listeners.hear("window_closed", **self._said_of(opened), reason=reason)
        finally:
            self._edge.release()

    def _said_of(self, opened: OpenWindow) -> dict[str, Any]:
        return {"window": opened.window, "target": self.target, "tools": opened.tools}

    def check_time(self) -> None:
        """Close a window that is over or too old, if this thread may; the helper's asks too."""
        self._instruments.watch()
        opened, window_s = self._open, self._means.limits.window_s
        if opened is None or not (opened.ends or opened.overdue(window_s)):
            return
        if not opened.may_stop_here:
            return
        if opened.ends:
            self.close_window(opened.ends)
            return
        with self._edge:
            opened.stop(f"limits.window_s {window_s:g} was reached")

    def retire(self) -> None:
        """Close the window that is open, say which demands were not served, and end."""
        try:
            if self._open is not None:
                ends_here = self._open.owner is None or self._open.ends
                self.close_window("end" if ends_here else "the session was closed", now=True)
        finally:  # strict passes on what stop raises, and still loses nothing
            waiting, self._has_told = () if self._has_told else self.waiting, True
            for demand in waiting:
                self._tell_served(demand, error="the session was closed")
            self._instruments.end()

    def forget(self) -> None:
        """Ignore all further calls: this is a forked child."""
        self._open = None
        self._uses = ()

    # What is said

    def _why_nothing(self, phases: Iterable[str]) -> str:
        if self._open is not None:
            return f"the window {self._open.window.id} was still open"
        if self.last_step is None:
            return "it was attached after the step had begun"
        if self._rule.mode == "continuous":
            return "its window could not be opened"
        entered, wanted = set(phases), self._rule.phases
        if entered and (wanted is None or entered & set(wanted)):
            return "its phases began while another window was open or ended"
        if wanted is None:
            return (
                "the step entered no phase, and discrete mode records phases; mark them with "
                "prof.phase(...), or set mode: continuous"
            )
        seen = ", ".join(sorted(entered)) or "none"
        return f"the step entered none of {', '.join(wanted)}; it entered: {seen}"

    def _skip(self, step: int, reason: str) -> None:
        said: Mapping[str, Any] = {} if self._demand is None else {"request": self._demand.id}
        for key in self.keys(self._demand):
            self._means.scribe.tell("skipped", **key, step=step, reason=reason, **said)
        self._means.boundary.tell("skipped", f"step {step}: {reason}")

    def _tell_served(self, demand: Demand, error: str = "") -> None:
        steps = self._served.pop(demand.id, [])
        for key in self.keys(demand):
            self._means.scribe.tell("served", **key, request=demand.id, steps=steps, error=error)

    def keys(self, demand: Demand | None) -> list[dict[str, Any]]:
        """Return the fields that name this target, or those of a demand, in a manifest line."""
        return self._instruments.keys(demand)
