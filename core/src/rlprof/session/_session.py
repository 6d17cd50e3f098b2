"""The session of one process: steps and phases come in, windows open and close, spans go out.

What it is told on the working thread costs a few microseconds while no window is open, and never
raises (`strict: true` opts out).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from contextlib import ExitStack
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from rlprof.errors import shown
from rlprof.schedule import LAST_STEP, Agenda, Demand
from rlprof.session._background import in_background, start_background
from rlprof.session._boundary import Guard, survives
from rlprof.session._demands import Batch
from rlprof.session._engines import engine_track
from rlprof.session._scope import Scope, noted
from rlprof.session._track import Track
from rlprof.session._trajectory import Trajectory
from rlprof.session._unrecorded import shortfall, unheld

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from rlprof.config import Config, ToolUse
    from rlprof.rundir import Here, RunFolder
    from rlprof.schedule import Schedule
    from rlprof.session._boundary import Boundary
    from rlprof.session._elsewhere import Members
    from rlprof.session._means import Means
    from rlprof.session._notice import Notice
    from rlprof.session._scribe import Scribe
    from rlprof.types import Target, Window

T = TypeVar("T")


class Session:
    """Made by `rlprof.open`; a context manager that closes itself."""

    def __init__(
        self,
        config: Config,
        boundary: Boundary,
        means: Means,
        *,
        leads: bool = True,
    ) -> None:
        self.boundary = boundary
        self.ids = itertools.count(1)
        self.current_step: int | None = None
        self.watchers = means.scribe.watchers
        """Called by the helper thread, about once a second."""
        self.at_end: list[Callable[[], None]] = []
        """Called once, when the session begins to close or its process was forked."""
        self.notice: Notice | None = None
        """What it prints on stderr."""
        self.config = config
        self._tracks: tuple[Track, ...] = ()
        self.step_id: int | None = None
        """The span of the step; None where the session is led and has no steps of its own."""
        self._step_ns = 0
        self._occurrences: dict[str, int] = {}
        self._is_closed = self._is_forgotten = False
        self._unretired: list[Track] = []
        """Tracks that have still to end, once the session is closed."""
        self._has_misstepped = False
        self._leads = leads
        self._came: deque[Batch] = deque()
        """What all that was asked knows of, until the next step begins."""
        self.means = means
        self.means.sampler.is_recording = lambda: self.is_recording
        self.watchers.append(self._tick)

    @property
    def scribe(self) -> Scribe:
        """The helper thread."""
        return self.means.scribe

    @property
    def run_dir(self) -> Path:
        """The run folder."""
        return self.means.run.path

    @property
    def run(self) -> RunFolder:
        """The run folder, with the identity of the run."""
        return self.means.run

    @property
    def here(self) -> Here:
        """The process, as other processes know it."""
        return self.means.here

    @property
    def name(self) -> str:
        """What its files are called."""
        return self.scribe.name

    @property
    def manifest(self) -> Path:
        """The file it writes to."""
        return self.run_dir / "manifest" / f"{self.name}.jsonl"

    @property
    def target(self) -> Target:
        """What it records."""
        return self.means.target

    @property
    def tracks(self) -> tuple[Track, ...]:
        """What is recorded: the process itself, and each engine that is attached."""
        return self._tracks

    @property
    def is_recording(self) -> bool:
        """Whether a window is open in this process."""
        return any(track.is_recording for track in self._tracks)

    @property
    def why_full(self) -> str:
        """Why no target of this process may have a further window; empty if one may."""
        reasons = [track.why_full for track in self._tracks]
        return reasons[0] if reasons and all(reasons) else ""

    # What the working thread calls

    def steps(self, steps: Iterable[T]) -> Iterator[T]:
        """Go through *steps*, the trainer's own numbers, telling of each as it begins."""
        try:
            for step in steps:
                self.step(step)
                yield step
        finally:
            self._end_steps()

    @survives
    def step(self, step: int) -> None:
        """Say that *step* begins, and with it the one before ends."""
        if self._is_closed:
            return
        try:
            step = index(step)
            wanted = "" if 0 <= step <= LAST_STEP else f"expected 0 to {LAST_STEP}"
        except TypeError:
            wanted = "expected a whole number"
        if wanted:
            self._end_steps()
            reason = f"{wanted}, got {shown(step)}; this step is not recorded"
            self.boundary.tell("step", reason)
            if not self._has_misstepped:  # the first stands for those that follow
                self._has_misstepped = True
                self.scribe.tell("problem", reason=f"step: {reason}")
            return
        if step == self.current_step:
            return
        self._end_step()
        self.step_id = next(self.ids)  # first: who reads the step on another thread reads it, too
        self.current_step = step
        self._occurrences = {}
        while self._came:  # before the first track: what comes now is for the next step
            self._came.popleft().is_out = True
        for track in self._tracks:
            track.begin_step(step)
        self._step_ns = time.monotonic_ns()

    def phase(self, name: str) -> Scope:
        """Return the context manager (`with`, `async with`) around a phase of the step."""
        return Scope(self, name if type(name) is str else str(name), None, is_phase=True)

    def span(self, name: str, attributes: Mapping[str, Any] | None = None) -> Scope:
        """Return the context manager around anything worth a line on the timeline.

        Spans open no window, and any number may run at a time, in threads and asyncio tasks.
        """
        name = name if type(name) is str else str(name)
        return Scope(self, name, noted(attributes) if attributes else None, is_phase=False)

    def trajectory(self, id: Any, attributes: Mapping[str, Any] | None = None) -> Trajectory:  # noqa: A002 -- what it is
        """Return the context manager around a trajectory, any number at a time.

        Every span inside it, in whatever task or thread that has its context, has the attribute
        `trajectory`.
        """
        return Trajectory(self, id, attributes)

    @survives
    def minibatch(self) -> None:
        """Say that a mini-batch has ended."""
        for track in self._tracks:
            track.minibatch()

    def figures(self) -> dict[str, float]:
        """Return figures of the last step for a logger; `{}` until one has ended.

        The helper thread makes them once a second, so they may belong to an earlier step than the
        one that has just ended: `rlprof/step` is its number.
        """
        return dict(self.scribe.figures.newest)

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
        global ranks it holds, unless it is one rank a replica, of *world_size* ranks; *loop* is the
        event loop its asynchronous methods belong to. Attached again (it was restarted), a replica
        is replaced.

        Raise ConfigError where the config names no engine for *role*, or cannot work.
        """
        if self._is_closed:
            return
        made = engine_track(
            self.config, self.means, handle,
            role=role, replica=replica, ranks=ranks, world_size=world_size, loop=loop,
            coordinates=coordinates,
        )  # fmt: skip
        if made is None:
            return
        track, uses = made
        self.scribe.tell("attached", target=attrs.asdict(track.target), ranks=list(track.ranks))
        before = [one for one in self._tracks if one.link and one.target == track.target]
        for one in before:
            self.boundary.call("attach", one.retire, lambda _: None)
        self._tracks = (*(one for one in self._tracks if one not in before), track)

        with Guard(self.boundary, "attach", lambda _: None):
            track.adopt(uses)

    # What listeners and fleets call

    def ask(self, asked: Iterable[tuple[Track, Demand, Sequence[ToolUse]]]) -> None:
        """Have tracks record their next steps; all begin with the same one, the next to begin."""
        batch, given = Batch(), list(asked)
        if given and not self.means.scratch.exists():
            self.means.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        for track, demand, uses in given:
            track.ask(demand, uses, batch)
        self._came.append(batch)

    def write(self, event: str, **fields: Any) -> None:
        """Add a line to the manifest."""
        self.scribe.tell(event, **fields)

    def log(self, message: str, level: int = logging.INFO) -> None:
        """Log *message* with the name of this process."""
        self.boundary.say(message, level)

    def warn(self, what: str, reason: str) -> None:
        """Log that *what* has failed: the first time as a warning, after that at DEBUG level."""
        self.boundary.tell(what, reason)

    def attempt(self, what: str, function: Callable[[], T]) -> T | None:
        """Return what *function* returns; if it raises, log that, unless strict raises it."""
        return self.boundary.call(what, function, lambda _: None)

    def add_figures(self, step: int | None, figures: Mapping[str, float]) -> None:
        """Add to the figures of a step that has ended."""
        self.scribe.figures.add(step, figures)

    @survives
    def close(self) -> None:
        """End step and window, wait for exports, write what is left; any number of times."""
        if self._is_forgotten:
            return
        with ExitStack() as stack:  # each of them, whatever strict lets the one before raise
            stack.callback(self._close_files)
            stack.callback(self._retire)
            if not self._is_closed:
                self._end()

    def _end(self) -> None:
        self.means.listeners.hear("session_closing")
        self._is_closed = True
        self._leave()
        self._unretired = list(self._tracks)
        self._end_step()
        self._say_shortfall()

    def _leave(self) -> None:
        while self.at_end:
            self.at_end.pop()()

    def _retire(self) -> None:
        """Close every track; after an interrupted close, finish the rest."""
        with ExitStack() as stack:  # all of them, even if strict lets one raise
            for track in self._unretired:
                stack.callback(self._let_end, track)

    def _let_end(self, track: Track) -> None:
        try:
            track.retire()
        except Exception:
            self._unretired.remove(track)
            raise
        self._unretired.remove(track)

    def _close_files(self) -> None:
        if self._unretired:  # a signal has cut this short, and the next call goes on
            return
        self.means.sampler.close()
        self.means.listeners.close()
        self.scribe.close()
        for wait in self.means.closing:
            self.attempt("close", partial(wait, self))
        if self.notice is not None:
            windows = {name for track in self._tracks for name in track.recorded}
            self.notice.closed(len(windows), len(self.scribe.failed))
            self.notice = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

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
        told: list[str] = []
        for track in self._tracks:
            door = partial(track.open_window, window, uses, demand)
            told.append(self.boundary.call("open_window", door, told.append) or "")
        why = "; ".join(filter(None, told))
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
        for track in self._tracks:
            self.attempt("close_window", partial(track.close_window, reason))

    def lead(
        self,
        target: Target,
        schedule: Schedule,
        uses: Sequence[ToolUse],
        members: Members,
        *,
        needs_tools: bool = True,
    ) -> Track:
        """Have *members*, processes elsewhere, record a role by its own *schedule*.

        Without *needs_tools*, windows open where *uses* name no tool, too: the members learn the
        step.
        """
        from rlprof.session._elsewhere import Elsewhere

        elsewhere = Elsewhere(target, self.means, members)
        kinds = ("tool", "engine")
        track = Track(target, Agenda(schedule), self.means, elsewhere, kinds=kinds)
        track.needs_tools = needs_tools
        track.adopt(uses)
        self.add(track)
        return track

    # What scopes call

    def count(self, phase: str) -> int:
        """Return how often the step has entered *phase* before."""
        before = self._occurrences.get(phase, 0)
        self._occurrences[phase] = before + 1
        return before

    def enter(self, scope: Scope) -> None:
        """Open the windows that are due with a phase, and its range."""
        for track in () if self._is_closed else self._tracks:
            if not track.is_idle:
                with Guard(self.boundary, "phase", lambda _: None):
                    track.enter(scope)

    async def open_away(self, scope: Scope) -> None:
        """Open the windows of engines on other threads: they may need this thread's event loop."""
        away = self._away(Track.opens_away, scope) or []
        try:
            await asyncio.gather(*(in_background(self._act, one.open_for, scope) for one in away))
        except BaseException:  # cancelled: nobody else would close what is open by now
            scope.is_cancelled = True
            for track in away:
                start_background(self._act, track.close_for, scope)
            raise

    async def close_away(self, scope: Scope) -> None:
        """Close them."""
        away = self._away(Track.closes_away, scope) or []
        for track in away:
            self._act(track.pop, scope)
        await asyncio.gather(*(in_background(self._act, one.close_for, scope) for one in away))

    @survives
    def _away(self, goes: Callable[[Track, Scope], bool], scope: Scope) -> list[Track]:
        return [] if self._is_closed else [one for one in self._tracks if goes(one, scope)]

    @survives
    def _act(self, act: Callable[[Scope], None], scope: Scope) -> None:
        act(scope)

    @survives
    def leave(self, scope: Scope) -> None:
        """Write the span down; close its range, and its window if it has one."""
        if self._is_closed:
            return
        self.scribe.span((
            "phase" if scope.is_phase else "span", scope.name, scope.start_ns, scope.end_ns,
            scope.step, scope.thread, scope.id, scope.parent, scope.occurrence, scope.written(),
        ))  # fmt: skip
        if scope.is_phase:
            for track in self._tracks:
                track.leave(scope)

    # Steps

    def _end_step(self) -> None:
        step, self.current_step = self.current_step, None
        if step is None or self.step_id is None:  # none began here
            return
        end_ns = time.monotonic_ns()
        self.scribe.span((
            "step", f"step {step}", self._step_ns, end_ns, step,
            threading.get_ident(), self.step_id, None, 0, None,
        ))  # fmt: skip
        self.means.listeners.hear(
            "step_ended", step=step, seconds=(end_ns - self._step_ns) / 1e9,
            windows=sum(track.has_captured(step) for track in self._tracks),
            phases=tuple(self._occurrences),
        )  # fmt: skip
        for track in self._tracks:
            track.end_step(step, self._occurrences)

    @survives
    def _end_steps(self) -> None:
        self._end_step()
        for track in self._tracks:
            track.end_steps()

    def _say_shortfall(self) -> None:
        """Say why nothing was recorded, where that is because of the steps that were told."""
        if self._has_misstepped or not self._leads:  # already said; or another decides on steps
            return
        outside = bool(self._occurrences) and not self.step_id
        reasons = [shortfall(self._tracks, outside=outside)]
        if self.means.target.world_size == 1:  # else others may hold what is chosen
            reasons += unheld(self.config, self._tracks)
        for reason in filter(None, reasons):
            self.scribe.tell("problem", reason=reason)
            self.boundary.say(reason, logging.WARNING)

    # The helper thread

    def _tick(self) -> None:
        for track in self._tracks:
            track.check_time()
        self.means.listeners.wake()

    # How it is made, and unmade in a forked child

    def add(self, track: Track) -> None:
        """Record one more target."""
        self._tracks = (*self._tracks, track)

    def forget(self) -> None:
        """Ignore all further calls: this is a forked child."""
        self._is_closed = self._is_forgotten = True
        self.means.listeners.forget()
        self._leave()
        for track in self._tracks:
            track.forget()
        self._tracks = ()
