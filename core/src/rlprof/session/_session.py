"""The session of one process: steps and phases come in, windows open and close, spans go out.

What it is told on the working thread costs a few microseconds while no window is open, and never
raises (`strict: true` opts out).
"""

from __future__ import annotations

import itertools
import threading
import time
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from rlprof.session import _current
from rlprof.session._boundary import survives
from rlprof.session._scope import Scope
from rlprof.session._window import OpenWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from rlprof.config import Limits
    from rlprof.rundir import Here, RunFolder
    from rlprof.schedule import Schedule
    from rlprof.session._boundary import Boundary
    from rlprof.session._recorder import Recorder
    from rlprof.session._scribe import Scribe
    from rlprof.types import Target, Window

T = TypeVar("T")


@attrs.frozen
class Place:
    """Who the session is and where its data go."""

    target: Target
    here: Here
    run: RunFolder
    scratch: Path


class Session:
    """Made by `rlprof.open`; a context manager that closes itself."""

    def __init__(
        self,
        place: Place,
        schedule: Schedule,
        limits: Limits,
        boundary: Boundary,
        *,
        scribe: Callable[[Callable[[], None]], Scribe],
    ) -> None:
        self.boundary = boundary
        self.ids = itertools.count(1)
        self.current_step: int | None = None
        self._place = place
        self._schedule = schedule
        self._limits = limits
        self.scribe = scribe(self._check_time)
        self._recorders: Sequence[Recorder] = ()
        self._open: OpenWindow | None = None
        self._edge = threading.RLock()  # taken where a window may open or close, never idle
        self._step_id = 0
        self._step_ns = 0
        self._occurrences: dict[str, int] = {}
        self._used: set[str] = set()
        self._captured_step: int | None = None
        self._is_closed = False

    @property
    def run_dir(self) -> Path:
        """The run folder."""
        return self._place.run.path

    @property
    def is_recording(self) -> bool:
        """Whether a window is open in this process."""
        return self._open is not None and self._open.is_recording

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
        except TypeError:
            self._end_steps()
            reason = f"expected a whole number, got {step!r}; this step is not recorded"
            self.boundary.tell("step", reason)
            return
        if step == self.current_step:
            return
        self._end_step()
        self.current_step = step
        self._step_id = next(self.ids)
        self._occurrences = {}
        if self._open is not None and self._open.owner is None:
            if self._open.window.start_step <= step < self._open.window.end_step:
                self._captured_step = step
            else:
                self._close_window("end")
        if self._open is None:
            self._open_window(self._schedule.at_step(step), None)
        self._step_ns = time.monotonic_ns()

    def phase(self, name: str) -> Scope:
        """Return the context manager (`with`, `async with`) around a phase of the step."""
        return Scope(self, name, None, is_phase=True)

    def span(self, name: str, attributes: Mapping[str, Any] | None = None) -> Scope:
        """Return the context manager around anything worth a line on the timeline.

        Spans open no window, and any number may run at a time, in threads and asyncio tasks.
        """
        return Scope(self, name, dict(attributes) if attributes else None, is_phase=False)

    @survives
    def minibatch(self) -> None:
        """Say that a mini-batch has ended."""
        if self._open is not None and self._open.is_recording:
            self._open.minibatch()
            self._check_time()

    @survives
    def close(self) -> None:
        """End step and window, wait for exports, write what is left; any number of times."""
        if self._is_closed:
            return
        self._is_closed = True
        if _current.session is self:
            _current.session = None
        self._end_step()
        try:
            with self._edge:
                if self._open is not None:
                    ends_here = self._open.owner is None
                    self._open.stop("end" if ends_here else "the session was closed")
                    self._open = None
        finally:  # strict passes on what stop raises, and still loses nothing
            for recorder in self._recorders:
                recorder.end()
            self.scribe.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # What scopes call

    @survives
    def enter_phase(self, scope: Scope) -> None:
        """Count the phase, open its window if one is due, and open its range."""
        scope.occurrence = self._occurrences.get(scope.name, 0)
        self._occurrences[scope.name] = scope.occurrence + 1
        if self._open is None and not self._is_closed:
            window = self._schedule.at_phase(self.current_step, scope.name, scope.occurrence)
            self._open_window(window, scope)
        if self._open is not None and self._open.is_recording:
            self._check_time()
            self._open.push(scope)

    @survives
    def leave(self, scope: Scope) -> None:
        """Write the span down; close its range, and its window if it has one."""
        if self._is_closed:
            return
        above = scope.above.id if scope.above is not None else None
        if above is None and scope.step is not None:
            above = self._step_id
        self.scribe.span((
            "phase" if scope.is_phase else "span", scope.name, scope.start_ns, scope.end_ns,
            scope.step, scope.thread, scope.id, above, scope.occurrence, scope.attributes,
        ))  # fmt: skip
        if scope.is_phase and self._open is not None:
            if self._open.is_recording:
                self._open.pop(scope)
            if self._open.owner is scope:
                self._close_window("end")

    # Windows

    def adopt(self, recorders: Sequence[Recorder]) -> None:
        """Take the tools that record this process."""
        self._recorders = recorders

    def forget(self) -> None:
        """Become deaf, in a forked child."""
        self._is_closed = True
        self._open = None
        self._recorders = ()

    def _open_window(self, window: Window | None, owner: Scope | None) -> None:
        if window is None or not self._recorders:
            return
        if self.scribe.over_budget:
            spent = f"limits.bytes {self._limits.bytes:,} is reached"
            self._captured_step = window.start_step
            self._skip(window.start_step, spent)
            return
        while window.id in self._used:  # a step that comes again, after a rollback
            window = attrs.evolve(window, occurrence=window.occurrence + 1)
        with self._edge:
            if self._open is not None:
                return
            self._used.add(window.id)
            self._captured_step = self.current_step
            opened = OpenWindow(window, self._recorders, owner)
            self._prepare(window)
            self.scribe.clock()
            self.scribe.flush()
            self._open = opened
            opened.start()

    def _prepare(self, window: Window) -> None:
        place = self._place
        out = place.run.path / window.folder / place.target.folder
        for recorder in self._recorders:
            recorder.prepare(
                recorder.capture(window, place.run.run_id, place.here), place.scratch, out,
                place.run.path,
            )  # fmt: skip

    def _close_window(self, reason: str) -> None:
        with self._edge:
            opened, self._open = self._open, None
            if opened is not None:
                opened.stop(reason)

    def _check_time(self) -> None:
        """Close a window that is too old, here if this thread may; the helper thread asks too."""
        opened = self._open
        if opened is None or not opened.overdue(self._limits.window_s) or not opened.may_stop_here:
            return
        with self._edge:
            opened.stop(f"limits.window_s {self._limits.window_s:g} was reached")

    # Steps

    def _end_step(self) -> None:
        step, self.current_step = self.current_step, None
        if step is None:
            return
        self.scribe.span((
            "step", f"step {step}", self._step_ns, time.monotonic_ns(), step,
            threading.get_ident(), self._step_id, None, 0, None,
        ))  # fmt: skip
        if self._recorders and step in self._schedule.steps and self._captured_step != step:
            self._skip(step, self._why_nothing())

    @survives
    def _end_steps(self) -> None:
        self._end_step()
        if self._open is not None and self._open.owner is None:
            self._close_window("end")

    def _why_nothing(self) -> str:
        seen = ", ".join(sorted(self._occurrences)) or "none"
        wanted = self._schedule.phases
        if self._open is not None:
            return f"the window {self._open.window.id} was still open"
        if self._schedule.mode == "continuous":
            return "its window could not be opened"
        if wanted is None:
            return (
                "the step entered no phase, and discrete mode records phases; mark them with "
                "prof.phase(...), or set mode: continuous"
            )
        return f"the step entered none of {', '.join(wanted)}; it entered: {seen}"

    def _skip(self, step: int, reason: str) -> None:
        self.scribe.tell("skipped", step=step, reason=reason)
        self.boundary.tell("skipped", f"step {step}: {reason}")
