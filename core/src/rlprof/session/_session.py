"""The session of one process: steps and phases come in, windows open and close, spans go out.

Its calls on the working thread cost a few microseconds while no window is open, and never raise
(`strict: true` opts out).
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rlprof.schedule import step_number
from rlprof.session._boundary import Guard, survives
from rlprof.session._scope import Scope, Steps, named, noted
from rlprof.session._targets import Targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlprof.config import Config
    from rlprof.rundir import RawSpan
    from rlprof.session._context import Context
    from rlprof.session._trajectory import Trajectory

T = TypeVar("T")


class Session(Targets):
    """The session that `rlprof.open` returns; a context manager that closes itself."""

    def __init__(self, config: Config, context: Context, *, leads: bool) -> None:
        super().__init__(config, context)
        self.scribe = context.scribe
        """The helper thread."""
        self.run = context.run
        """The run folder, with the identity of the run."""
        self.run_dir = context.run.path
        """The run folder."""
        self.here = context.here
        """The process, as other processes know it."""
        self.name = context.scribe.name
        """The name of its files."""
        self.manifest = context.scribe.manifest
        """The file it writes to."""
        self.target = context.target
        """What it records."""
        self.watchers = context.scribe.watchers
        """Called by the helper thread, about once a second."""
        self.failed = context.scribe.failed
        """The windows in which something failed; a fleet adds those of its members."""
        self.at_step: list[Callable[[], None]] = []
        """Called once, on the working thread, as the next step begins."""
        self.at_end: list[Callable[[], None]] = []
        """Called once, when the session begins to close or its process was forked."""
        self.closing = context.closing
        """Called, with this session, after its last write."""
        self.notice: Callable[[int, int], object] | None = None
        """Prints on stderr how many windows were recorded, and how many of them failed."""
        self._adding = threading.Lock()
        self._step_ns = 0
        self._is_forgotten = False
        self._has_misstepped = False
        self.is_cut = False  # whether training leaves the current step before its end
        self._entered: set[str] = set()
        """The phases of steps to record."""
        self.leads = leads
        """False: another process decides on its windows."""
        self.watchers.append(self._tick)

    # Called by the working thread

    def steps(self, steps: Iterable[T]) -> Steps[T]:
        """Return *steps*, the trainer's numbers; each is reported as it begins."""
        return Steps(self, steps)

    @survives
    def step(self, step: int) -> None:
        """Begin *step*, and end the step before."""
        if self._is_closed:
            return
        try:
            step = step_number(step)
        except ValueError as exc:
            self.end_steps()
            reason = f"{exc}; this step is not recorded"
            self.boundary.warn("step", reason)
            if not self._has_misstepped:  # the first stands for those that follow
                self._has_misstepped = True
                self.scribe.record("problem", reason=f"step: {reason}")
            return
        if step == self.current_step:
            return
        self._end_step()
        self.step_id = next(self.ids)  # first: a thread that reads the step reads its id, too
        self.current_step, self.is_cut = step, False
        self._occurrences = {}
        while self.at_step:
            self.at_step.pop()()
        for track in self.tracks:
            track.begin_step(step)
        self._step_ns = time.monotonic_ns()

    def phase(self, name: str) -> Scope:
        """Return the context manager (`with`, `async with`) around a phase of the step."""
        return Scope(self, name if type(name) is str else named(name), None, is_phase=True)

    def span(self, name: str, attributes: Mapping[str, Any] | None = None) -> Scope:
        """Return the context manager around anything worth a slice on the timeline.

        Spans open no window; any number may run at a time, in threads and asyncio tasks.
        """
        name = name if type(name) is str else named(name)
        own = None if attributes is None else noted(attributes)
        return Scope(self, name, own, is_phase=False)

    def trajectory(self, id: Any, attributes: Mapping[str, Any] | None = None) -> Trajectory:  # noqa: A002 -- what it is
        """Return the context manager around a trajectory, any number at a time.

        Every span inside it, in any task or thread with its context, has the attribute
        `trajectory`.
        """
        from rlprof.session._trajectory import Trajectory  # most processes run no agent loop

        return Trajectory(self, id, attributes)

    def figures(self) -> dict[str, float]:
        """Return figures of the last step for a logger; `{}` until one has ended.

        The listener `live` makes them about once a second, so they may belong to an earlier step
        than the last one: `rlprof/step` is its number.
        """
        return dict(self.scribe.figures)

    # Called by listeners and fleets

    def write(self, event: str, **fields: Any) -> None:
        """Add a line to the manifest."""
        self.scribe.record(event, **fields)

    def log(self, message: str, level: int = logging.INFO) -> None:
        """Log *message* with the name of this process."""
        self.boundary.log(message, level)

    def warn(self, what: str, reason: str) -> None:
        """Log that *what* failed: the first time as a warning, later at DEBUG level."""
        self.boundary.warn(what, reason)

    def attempt(self, what: str, function: Callable[[], T]) -> T | None:
        """Return the result of *function*; log its exceptions, unless strict mode raises them."""
        return self.boundary.call(what, function)

    def add_figures(self, step: int | None, figures: Mapping[str, float]) -> None:
        """Add to the figures of *step*, unless a later one has ended.

        Figures with `rlprof/step` are the first of their step, and make it the last step.
        """
        with self._adding:  # a fleet adds its own from another thread
            last = self.scribe.figures
            if last.get("rlprof/step") == step:
                self.scribe.figures = {**last, **figures}
            elif "rlprof/step" in figures:
                self.scribe.figures = dict(figures)

    def watch_spans(self, see: Callable[[Sequence[RawSpan]], object]) -> None:
        """Call *see* with the spans that the helper thread is about to write.

        A step comes last among the spans of a call. The helper thread waits for *see*, and so do
        the manifest and exports. If it raises, it is not called again.
        """

        def drop(reason: str) -> None:
            self.scribe.span_watchers.pop(see, None)
            self.write("problem", reason=f"a listener sees no more spans: {reason}")

        self.scribe.span_watchers[see] = Guard(self.scribe.boundary, "watch_spans", drop)

    def add_span(
        self, name: str, start_ns: int, end_ns: int, attributes: Mapping[str, Any] | None = None
    ) -> None:
        """Add an ended span of this thread, with times of `time.monotonic_ns`."""
        step = self.current_step
        self.scribe.span((
            "span", name, start_ns, end_ns, step, threading.get_ident(), next(self.ids),
            None if step is None else self.step_id, 0, attributes,
        ))  # fmt: skip

    @survives
    def close(self) -> None:
        """End step and window, wait for exports, write the rest; safe to call again."""
        if self._is_forgotten:
            return
        with ExitStack() as stack:  # each of them, whatever strict lets the one before raise
            stack.callback(self._close_files)
            stack.callback(self._retire)
            if not self._is_closed:
                self._end()

    def _end(self) -> None:
        self.context.listeners.hear("session_closing")
        self._is_closed = True
        self._leave()
        self._end_step()
        self._report_shortfall()

    def _leave(self) -> None:
        while self.at_end:
            self.at_end.pop()()

    def _retire(self) -> None:
        """Close every track; after an interrupted close, finish the rest."""
        with ExitStack() as stack:  # all of them, even if strict lets one raise
            for track in self.tracks:
                stack.callback(track.retire)

    def _close_files(self) -> None:
        if not all(track.has_ended for track in self.tracks):  # a signal has cut this short
            return
        self.context.listeners.close()
        self.scribe.close()
        for wait in self.context.closing:
            self.attempt("close", partial(wait, self))
        if self.notice is not None and not self.scribe.lost:
            recorders = [track for track in self.tracks if track.instruments.needs_tools]
            windows = {window.id for track in recorders for window in track.recorded}
            self.notice(len(windows), len(self.failed))
            self.notice = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, exc: object, trace: object) -> None:
        if isinstance(exc, (Exception, KeyboardInterrupt)):
            from rlprof.session._unrecorded import ended_with

            is_in_step = self.current_step is not None or self.is_cut
            self.is_cut = True
            reason = ended_with(exc, self.tracks, is_in_step=is_in_step)
            self.write("problem", reason=reason)
        self.close()

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
        if "step_ended" in self.context.listeners:
            self.context.listeners.hear(
                "step_ended", step=step, seconds=(end_ns - self._step_ns) / 1e9,
                windows=sum(track.captured_step == step for track in self.tracks),
                phases=tuple(self._occurrences),
            )  # fmt: skip
        if any(step in track.own.steps for track in self.tracks):
            self._entered.update(self._occurrences)
        for track in self.tracks:
            track.end_step(step, self._occurrences, is_cut=self.is_cut)

    @survives
    def end_steps(self) -> None:
        """End the last step: the loop is over."""
        self._end_step()
        for track in self.tracks:
            track.end_steps()

    def _report_shortfall(self) -> None:
        """Report why nothing was recorded, if the reported steps are the reason."""
        if self._has_misstepped or not self.leads:  # reported before; or another decides on steps
            return
        from rlprof.session._unrecorded import lacking

        outside = bool(self._occurrences) and not self.step_id
        for reason in lacking(self.config, self.tracks, self._entered, outside=outside):
            self.scribe.record("problem", reason=reason)
            self.boundary.log(reason, logging.WARNING)

    # The helper thread

    def _tick(self) -> None:
        for track in self.tracks:
            track.check_time()
        self.context.listeners.wake()

    # Creation, and the end in a forked child

    def forget(self) -> None:
        """Ignore all further calls: this is a forked child."""
        self._is_closed = self._is_forgotten = True
        self.context.listeners.forget()
        self._leave()
        self.tracks = ()
