"""One window of `torch`: the profiler, its ranges, and the notes that `export` will need."""

from __future__ import annotations

import json
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from rlprof_torch._clock import CLOCK_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof_torch._options import TorchOptions

NOTES = "torch.json"
"""In the window's folder: what was applied, and the raw traces with their marks."""
_UNSAID = str.maketrans({'"': "'", "\\": "/"})


def range_name(name: str) -> str:
    """Make *name* safe for Kineto, which writes a quote as it is: the whole file is invalid then.

    It also turns what is not ASCII into "unknown"; here those characters become '?' one by one.
    """
    text = name.translate(_UNSAID).encode("ascii", "replace").decode("ascii")
    return "".join(c if c.isprintable() else " " for c in text)[:200].strip() or "unnamed"


def has_xpu(torch: Any) -> bool:
    """Whether *torch* sees an Intel GPU."""
    return bool(hasattr(torch, "xpu") and torch.xpu.is_available())


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
        self.unsupported: dict[str, str] = {}
        self.applied: dict[str, Any] = {}
        if lacks_all_threads and options.all_threads:
            self.unsupported["all_threads"] = lacks_all_threads
        self._profile = self._make(options, all_threads=not lacks_all_threads)

    def _make(self, options: TorchOptions, *, all_threads: bool) -> Any:
        profiler = self._torch.profiler
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
        return profiler.profile(
            activities=activities,
            schedule=self._inner_schedule(),
            on_trace_ready=self._save,
            experimental_config=config(profile_all_threads=True) if all_threads else None,
            **asked,
        )

    def _inner_schedule(self) -> Any:
        chosen = self._schedule
        if chosen is None:
            return None
        return self._torch.profiler.schedule(
            skip_first=chosen.skip_first,
            wait=chosen.wait,
            warmup=chosen.warmup,
            active=chosen.active,
            repeat=chosen.repeat,
        )

    def begin(self) -> None:
        """Start; recording has begun when this returns, unless the schedule waits."""
        self._profile.start()
        self._mark()

    def finish(self) -> weakref.ref[Any]:
        """Stop; Kineto's trace is written by `_save`, which the profiler calls."""
        # Ranges of other threads are theirs to close; Kineto ends what is open.
        stack = self._ranges.pop(threading.get_ident(), [])
        while stack:
            stack.pop().__exit__(None, None, None)
        self._mark()
        self._profile.stop()
        if not self._parts:
            note = f"the window ended in mini-batch {self._batch}, before the schedule recorded"
            self._write_notes(note)
        return weakref.ref(self._profile)

    def push(self, name: str, payload: Mapping[str, Any]) -> None:  # noqa: ARG002 -- the name must not vary
        scope = self._torch.profiler.record_function(range_name(name))
        scope.__enter__()
        self._ranges.setdefault(threading.get_ident(), []).append(scope)

    def pop(self) -> None:
        stack = self._ranges.get(threading.get_ident())
        if stack:
            stack.pop().__exit__(None, None, None)

    def minibatch(self) -> None:
        """Go on to the next mini-batch; the schedule may start or end a trace here."""
        if self._schedule is None:
            return
        was_recording = self._is_recording()
        self._mark()
        self._profile.step()
        self._batch += 1
        if self._is_recording() and not (was_recording and self._marks):
            self._first_batch = self._batch
        self._mark()

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
        file = f"part-{len(self._parts)}.json"
        part: dict[str, Any] = {"file": file, "marks": list(self._marks)}
        if self._schedule is not None:
            part["minibatches"] = [self._first_batch, self._batch]
        self._marks.clear()
        self._parts.append(part)
        profile.export_chrome_trace(str(self._folder / file))
        self._write_notes("")

    def _write_notes(self, note: str) -> None:
        notes = {"applied": self.applied, "parts": self._parts, "note": note}
        (self._folder / NOTES).write_text(json.dumps(notes))
