"""One window of `torch`: the profiler, its ranges, and the notes that `export` will need."""

from __future__ import annotations

import json
import threading
import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError
from rlprof_torch._swaps import CONTENTS, SwapGuard
from rlprof_traces.marks import CLOCK_MARK, range_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rlprof_torch._options import TorchOptions

NOTES = "torch.json"
"""In the window's folder: what was applied, and the raw traces with their marks."""
_OF_NO_CONCERN = ("Warning: Profiler clears events", "Profiler won't be using warmup")
"""Warnings of `torch.profiler`; where warnings are errors, the window would fail.

torch 2.10 and 2.11 give the first in every process, though a window has no cycle to lose.
"""


def has_xpu(torch: Any) -> bool:
    """Whether *torch* sees an Intel GPU."""
    return bool(hasattr(torch, "xpu") and torch.xpu.is_available())


def ignore_warnings() -> None:
    """Ignore those of no concern; `catch_warnings` would race with other threads."""
    known = {getattr(message, "pattern", "") for _, message, *_ in warnings.filters}
    for text in set(_OF_NO_CONCERN) - known:
        warnings.filterwarnings("ignore", message=text)


class TorchRecording:
    """One window: the profiler, its ranges, and the notes `export` will need."""

    def __init__(
        self, torch: Any, options: TorchOptions, folder: Path, lacks_all_threads: str
    ) -> None:
        self._torch = torch
        self._folder = folder
        self._schedule = options.schedule
        self._parts: list[dict[str, Any]] = []
        self._marks: list[tuple[int, int]] = []
        self._ranges: dict[int, list[Any]] = {}
        self._batch = self._first_batch = 1
        self._is_broken = self._is_over = False
        self._why = ""
        self._any_thread = not lacks_all_threads
        self._thread = threading.get_ident()
        self.unsupported: dict[str, str] = {}
        self.applied: dict[str, Any] = {}
        if lacks_all_threads and options.all_threads:
            self.unsupported["all_threads"] = lacks_all_threads
        self._profile = self._make(options, all_threads=not lacks_all_threads)
        self._refers_to_tensors = bool(CONTENTS & set(options.contents))
        self._guard: SwapGuard | None = None
        self._lock = threading.RLock()

    def _make(self, options: TorchOptions, *, all_threads: bool) -> Any:
        profiler, chosen = self._torch.profiler, self._schedule
        contents = set(options.contents)
        devices = {"cuda": self._torch.cuda.is_available(), "xpu": has_xpu(self._torch)}
        activities = [profiler.ProfilerActivity.CPU]
        device = ""
        for name, is_there in devices.items():
            if name in contents and not is_there:
                self.unsupported[name] = f"torch sees no {name} device here"
            if is_there and (name in contents or not contents):
                activities.append(getattr(profiler.ProfilerActivity, name.upper()))
                device = name
        asked = {
            "record_shapes": "shapes" in contents,
            "profile_memory": "memory" in contents,
            "with_stack": "stack" in contents,
            "with_flops": "flops" in contents,
            "with_modules": "modules" in contents,
        }
        self.applied = {"device": device, "all_threads": all_threads, **asked}
        config = self._torch._C._profiler._ExperimentalConfig
        special = {"profile_all_threads": True} if all_threads else {}
        if "stack" not in contents and hasattr(config, "trace_only"):
            special["trace_only"] = True  # an equal trace, and a shorter stop
        ignore_warnings()
        return profiler.profile(
            activities=activities,
            schedule=profiler.schedule(**attrs.asdict(chosen)) if chosen else None,
            on_trace_ready=self._save,
            experimental_config=config(**special) if special else None,
            **asked,
        )

    def begin(self) -> None:
        """Start; recording has begun when this returns, unless the schedule waits."""
        with self._guarded():
            self._profile.start()
        with self._torch.profiler.record_function("rlprof.warmup"):
            pass  # the first range takes 800 us, a mark should be tight
        self._mark()
        if self._refers_to_tensors:
            self._guard = SwapGuard(self._torch, self._make_way)

    def drives(self, profile: Any) -> bool:
        """Whether *profile*, of `torch.autograd`, is the one of this window."""
        return self._profile.profiler is profile

    def _make_way(self) -> None:
        """End early, because training swaps tensors, and cannot while the profiler knows them."""
        self.finish("closed early: training swapped tensors (contents: shapes, flops, stack)")

    def finish(self, why: str = "") -> None:
        """Stop; Kineto's trace is written by `_save`, which the profiler calls.

        Then free the events, 0.4 us each. They are part of a cycle and would stay where training
        has switched the garbage collector off.
        """
        with self._lock:
            if self._is_over:
                return
            self._is_over, self._why = True, why
            if self._guard is not None:
                self._guard.take_away()
            try:
                self._finish()
            finally:
                if self._profile.profiler is not None:
                    self._profile.profiler.kineto_results = None

    def _finish(self) -> None:
        self._close_ranges()
        if self._is_elsewhere:
            self._give_up()
        self._mark()
        if not self._is_broken or self._torch.autograd.profiler._is_profiler_enabled:
            self._profile.stop()
        if not self._parts:
            note = f"the window ended in mini-batch {self._batch}, nothing was recorded by then"
            self._write_notes("; ".join(filter(None, [self._why, note])))

    @property
    def _is_elsewhere(self) -> bool:
        """Whether this is not the thread that torch must be called on."""
        return not self._any_thread and threading.get_ident() != self._thread

    def _give_up(self) -> None:
        """End it on another thread: torch loses its recording, but it can record again.

        Writing such a trace is a segmentation fault, and so is leaving the profiler to itself once
        its thread has ended (torch 2.13, bare as well).
        """
        self._profile.on_trace_ready = None
        if self._why:
            self._write_notes(self._why)
        if not self._is_broken:
            self._profile.stop()
        raise CaptureError(
            "was stopped on another thread than it was started on, and torch loses such a trace; "
            "leave a phase on the thread that entered it"
        )

    def push(self, name: str, payload: Mapping[str, Any]) -> None:  # noqa: ARG002 -- the name must not vary
        with self._lock:
            if self._is_over:  # a range that outlives its trace can crash a later one
                return
            scope = self._torch.profiler.record_function(range_name(name))
            scope.__enter__()
            self._ranges.setdefault(threading.get_ident(), []).append((name, scope))

    def pop(self) -> None:
        """Close the range this thread opened last."""
        with self._lock:
            stack = self._ranges.get(threading.get_ident())
            if stack:
                stack.pop()[1].__exit__(None, None, None)

    def _close_ranges(self) -> None:
        """Close all ranges, of all threads, before the trace ends.

        One that is left open ends some time later, and if that is while another trace records,
        torch writes into memory of the first: a segmentation fault (torch 2.13, bare as well).
        """
        ranges, self._ranges = self._ranges, {}
        for stack in ranges.values():
            while stack:
                stack.pop()[1].__exit__(None, None, None)

    def minibatch(self) -> None:
        """Go on to the next mini-batch; the schedule may start or end a trace here."""
        if self._schedule is None:
            return
        with self._lock:
            if not self._is_over:
                self._step()

    def _step(self) -> None:
        if self._is_elsewhere:
            raise CaptureError(
                "was called on another thread than the recorded one; call prof.minibatch() there"
            )
        was_recording = self._is_recording()
        names = [name for name, _ in self._ranges.get(threading.get_ident(), [])]
        self._close_ranges()
        self._mark()
        with self._guarded():
            self._profile.step()
        for name in names:  # so that each trace has the phases it is part of
            self.push(name, {})
        self._batch += 1
        if self._is_recording() and not (was_recording and self._marks):
            self._first_batch = self._batch
        self._mark()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Note that the profiler was left half way: stopping it twice is a segmentation fault."""
        try:
            yield
        except BaseException:
            self._is_broken = True
            raise

    def _is_recording(self) -> bool:
        return "RECORD" in self._profile.current_action.name

    def _mark(self) -> None:
        """Leave a short range and the wall clock around it: the proof of the trace's clock."""
        if not self._is_recording():
            return
        before = time.time_ns()
        with self._torch.profiler.record_function(CLOCK_MARK):
            pass
        self._marks.append((before, time.time_ns()))

    def _save(self, profile: Any) -> None:
        """Write one raw trace; called by the profiler on its own thread, inside stop or step."""
        # What follows the last minibatch() is the end of the phase, not one more mini-batch.
        last = self._batch - self._is_over
        if self._schedule is not None and last < self._first_batch and self._parts:
            return
        file = f"part-{len(self._parts)}.json"
        part: dict[str, Any] = {"file": file, "marks": list(self._marks)}
        if self._schedule is not None:
            part["minibatches"] = [self._first_batch, max(self._first_batch, last)]
        self._marks.clear()
        self._parts.append(part)
        profile.export_chrome_trace(str(self._folder / file))
        self._write_notes(self._why)

    def _write_notes(self, note: str) -> None:
        notes = {"applied": self.applied, "parts": self._parts, "note": note}
        (self._folder / NOTES).write_text(json.dumps(notes))
