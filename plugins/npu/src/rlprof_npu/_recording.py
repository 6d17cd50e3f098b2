"""One window: the profiler, the ranges of its phases, and the notes that `export` needs."""

from __future__ import annotations

import inspect
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_npu._forks import guard_forks
from rlprof_npu._library import experimental
from rlprof_npu._options import DOMAIN
from rlprof_npu._raw import find_folder, missing_in, write_notes
from rlprof_traces.marks import CLOCK_MARK, range_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof import Target, Window
    from rlprof_npu._options import NpuOptions

LEFT_RUNNING = threading.Event()
"""Set once a window ended on another thread: torch_npu stops only the calling thread's recorder.

A second recorder can end the process, so this process then opens no more windows.
"""


def _one_step(actions: Any) -> Callable[[int], Any]:
    """Return a schedule that records one step, by which torch_npu numbers kernels."""
    left = [actions.RECORD_AND_SAVE]
    return lambda _: left.pop() if left else actions.NONE


class NpuRecording:
    """One window, begun and ended on one thread."""

    def __init__(
        self, torch: Any, torch_npu: Any, options: NpuOptions, target: Target, window: Window
    ) -> None:
        self._torch = torch
        self._library = torch_npu
        self._options = options
        self._window = window
        self._profile: Any = None
        self._folder = Path()
        self._thread = threading.get_ident()
        self._ranges: dict[int, list[Callable[[], None]]] = {}
        self._marks: list[list[int]] = []
        self._silent = 0
        self._has_cpu = "cpu" in options.activities
        self._fields, self.unsupported = experimental(torch_npu.profiler, options)
        self._mark_range = self._choose_marks()
        self.applied: dict[str, Any] = {
            "activities": list(options.activities),
            "level": options.level,
            "aic_metrics": options.metrics,
            "mstx": "mstx" in self._fields or "msprof_tx" in self._fields,
            "phases": self._mark_range.__name__.removeprefix("_as_"),
            "torch_npu": str(torch_npu.__version__),
        }
        self._notes: dict[str, Any] = {
            "rank": target.rank,
            "applied": self.applied,
            "marks": self._marks,
            "analysis": options.analysis,
            "timeout_s": options.analysis_timeout_s,
            "export_type": list(options.export_type),
        }

    def _choose_marks(self) -> Callable[[str], Callable[[], None]]:
        if "npu" in self._options.activities and self._options.has_marks:
            return self._as_mstx
        return self._as_record_function if self._has_cpu else self._as_nothing

    def begin(self, folder: Path) -> None:
        """Start; recording has begun when this returns."""
        profiler, contents = self._library.profiler, self._options.contents
        self._folder = folder
        write_notes(folder, self._notes)
        activities = [
            getattr(profiler.ProfilerActivity, one.upper()) for one in self._options.activities
        ]
        # The handler sets the folder for the whole process, so it is made just before the start.
        handler = profiler.tensorboard_trace_handler(str(folder), analyse_flag=False)
        self._profile = profiler.profile(
            activities=activities,
            schedule=_one_step(profiler.ProfilerAction),
            on_trace_ready=handler,
            experimental_config=profiler._ExperimentalConfig(**self._fields),
            record_shapes="shapes" in contents,
            profile_memory="memory" in contents,
            with_stack="stack" in contents,
            with_modules="module" in contents,
        )
        guard_forks(self._profile)
        self._profile.step_num = self._window.start_step
        self._profile.start()
        if find_folder(folder) is None:
            raise CaptureError("torch_npu did not start to record; its output has the reason")
        if self._has_cpu:
            with self._torch.profiler.record_function("rlprof.warmup"):
                pass  # the first range is slow, a mark should be tight
        self._mark()

    def abandon(self) -> None:
        """End a profiler that did not begin."""
        profile, self._profile = self._profile, None
        if profile is not None:
            with suppress(Exception):
                profile.stop()

    def end(self) -> None:
        """Stop; the raw data and their notes are on disk when this returns."""
        profile, self._profile = self._profile, None
        if profile is None:
            return
        is_elsewhere = self._is_elsewhere
        try:
            self._close_ranges()
            self._mark()
        finally:
            profile.step()  # ends the only step there is, and saves it
            profile.stop()
            if is_elsewhere:
                self._leave_running()
        made = find_folder(self._folder)
        missing = missing_in(made, self._options.activities)
        if is_elsewhere:
            missing.append("it ended on another thread than it began on, so events may be missing")
        remarks = [f"mstx recorded none of {self._silent} phases"] if self._silent else []
        if unconfirmed := ", ".join(self._options.unconfirmed):
            remarks.append(f"torch_npu does not say whether CANN could record {unconfirmed}")
        self._notes |= {"missing": missing, "said": remarks, "has_ended": True}
        write_notes(self._folder, self._notes)
        if made is None:
            raise CaptureError(missing[0])

    @property
    def _is_elsewhere(self) -> bool:
        return threading.get_ident() != self._thread

    def _leave_running(self) -> None:
        """Open no more windows in this process, and let torch_npu follow no more Python calls."""
        LEFT_RUNNING.set()
        if any(one in self._options.contents for one in ("stack", "module")):
            getattr(threading, "setprofile_all_threads", sys.setprofile)(None)  # Python 3.12

    def push(self, name: str, payload: Mapping[str, Any]) -> None:  # noqa: ARG002 -- the name must not vary
        """Open a range."""
        close = self._mark_range(range_name(name))
        self._ranges.setdefault(threading.get_ident(), []).append(close)

    def pop(self) -> None:
        """Close the range this thread opened last."""
        stack = self._ranges.get(threading.get_ident())
        if stack:
            stack.pop()()

    def _close_ranges(self) -> None:
        """Close what is open, on all threads: mstx knows no end of a window."""
        ranges, self._ranges = self._ranges, {}
        for stack in ranges.values():
            while stack:
                stack.pop()()

    def _as_mstx(self, text: str) -> Callable[[], None]:
        mstx = self._library.npu.mstx
        has_domains = "domain" in inspect.signature(mstx.range_start).parameters  # not in 2.5
        own: dict[str, str] = {"domain": DOMAIN} if has_domains else {}
        number = mstx.range_start(text, **own)
        self._silent += not number
        return lambda: mstx.range_end(number, **own)

    def _as_record_function(self, text: str) -> Callable[[], None]:
        scope = self._torch.profiler.record_function(text)
        scope.__enter__()
        return lambda: scope.__exit__(None, None, None)

    def _as_nothing(self, _: str) -> Callable[[], None]:
        return lambda: None

    def _mark(self) -> None:
        """Leave a short range and the wall clock around it: the proof of the trace's clock."""
        if not self._has_cpu or self._is_elsewhere:
            return
        before = time.time_ns()
        with self._torch.profiler.record_function(CLOCK_MARK):
            pass
        self._marks.append([before, time.time_ns()])
