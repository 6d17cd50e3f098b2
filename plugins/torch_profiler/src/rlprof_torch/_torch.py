"""The tool `torch`: torch.profiler around a window, with the least done while the step waits.

In the process: start, ranges, stop, and the raw `.json` that Kineto writes. All else (strict
JSON, compression, the clock) is done by `export` in a helper process.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError, hookimpl
from rlprof_torch._kineto import CLOCK_MARK, finish
from rlprof_torch._options import TorchOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof import Capture
    from rlprof.types import Place

_NOTES = "torch.json"
_UNSAID = str.maketrans({'"': "'", "\\": "/"})


def range_name(name: str) -> str:
    """Make *name* safe for Kineto, which writes a quote as it is: the whole file is invalid then.

    It also turns what is not ASCII into "unknown"; here those characters become '?' one by one.
    """
    text = name.translate(_UNSAID).encode("ascii", "replace").decode("ascii")
    return "".join(c if c.isprintable() else " " for c in text)[:200].strip() or "unnamed"


@attrs.define(eq=False)  # identity: pluggy compares plugins
class Torch:
    """Record windows with torch.profiler: operators, kernels, memory, stacks."""

    Options = TorchOptions
    claims = {"kineto": "process", "cupti": "process"}  # noqa: RUF012 -- read, never written

    options: TorchOptions = attrs.field(factory=TorchOptions)
    _recording: _Recording | None = None
    _has_device: bool = False

    @property
    def runs_on(self) -> str:
        """On the CPU, with all threads, any thread may start it.

        With a device that is likely so and not proven, and the wrong answer is an empty trace.
        """
        free = not self._has_device and not self._lacks_all_threads()
        return "process" if free else "thread"

    @hookimpl
    def configure(self, place: Place, options: TorchOptions) -> None:
        """Import torch, and what its profiler would import in the first `start`."""
        self.options = options
        if place == "launch":
            return
        try:
            import torch
        except ImportError as exc:
            message = f"torch: cannot be imported: {exc}; install torch in this environment"
            raise CaptureError(message) from exc
        # hasattr(torch, "_inductor") in profile.__init__ pulls this in: 2 to 4 s, better now.
        __import__("torch._inductor.config")
        self._has_device = torch.cuda.is_available() or _has_xpu(torch)
        # 2.13 prints two lines a window and no level keeps errors alone; export finds out what
        # is missing from a trace, so silence costs nothing.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        busy = torch.autograd.profiler._is_profiler_enabled
        if self.runs_on == "process" and not busy:
            # Kineto wants its first start on the thread that imported it.
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
                pass

    @hookimpl
    def start(self, folder: Path) -> _Recording:
        """Start a new profiler; refuse if one is running, for both would lose their data."""
        import torch

        busy = torch.autograd.profiler._is_profiler_enabled
        if self._recording is not None or busy or torch._C._autograd._profiler_enabled():
            raise CaptureError(
                "another torch profiler is active in this process; it goes on, this window does "
                "not record (two at once lose both traces)"
            )
        self._recording = _Recording(torch, self.options, folder, self._lacks_all_threads())
        self._recording.begin()
        return self._recording

    @hookimpl
    def stop(self) -> None:
        """Stop, and let Kineto write its raw trace: both hold the GIL, 12 us an event."""
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.finish()

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Make each raw trace strict, compressed and placed on the clock."""
        try:
            notes = json.loads((folder / _NOTES).read_bytes())
        except (OSError, ValueError):
            notes = {}
        parts = notes.get("parts") or [
            {"file": raw.name} for raw in sorted(folder.glob("part-*.json"))
        ]
        if not parts:
            raise CaptureError(notes.get("note") or "the profiler left no raw trace")
        return [self._export_part(capture, part, notes, folder, out) for part in parts]

    def _export_part(
        self,
        capture: Capture,
        part: Mapping[str, Any],
        notes: Mapping[str, Any],
        folder: Path,
        out: Path,
    ) -> Artifact:
        batches = part.get("minibatches")
        suffix = f"_mb{batches[0]}-{batches[1]}" if batches else ""
        name = f"{capture.stem}{suffix}.pt.trace.json.gz"
        header = {
            "run": capture.run_id,
            "target": attrs.asdict(capture.target),
            "window": attrs.asdict(capture.window),
            "tool": capture.tool,
            "host": capture.host,
            "pid": capture.pid,
            "applied": notes.get("applied") or {},
        }
        marks = [(int(before), int(after)) for before, after in part.get("marks", [])]
        found = finish(folder / str(part["file"]), out / name, header=header, marks=marks)
        said = []
        if found.truncated:
            said.append("the raw trace was cut: what was whole is kept")
        if found.dropped:
            said.append(f"{found.dropped} events that were no JSON could not be kept")
        if not found.device_events and notes.get("applied", {}).get("device"):
            said.append(f"no event of {notes['applied']['device']}, which was asked for")
        return Artifact(
            path=name,
            kind="trace",
            format="chrome-trace",
            status="partial" if found.truncated or found.dropped else "whole",
            note="; ".join(said),
            events=found.events,
        )

    def _lacks_all_threads(self) -> str:
        """Say why not all threads can be recorded; empty if they can."""
        if not self.options.all_threads:
            return "all_threads: false"
        if "memory" in self.options.contents:
            return "torch records memory of one thread only"  # measured: no [memory] events else
        torch: Any = sys.modules.get("torch")
        known = str(torch._C._profiler._ExperimentalConfig.__init__.__doc__) if torch else ""
        if torch and "profile_all_threads" not in known:
            return f"torch {torch.__version__} cannot; 2.8 can"
        return ""


def _has_xpu(torch: Any) -> bool:
    return bool(hasattr(torch, "xpu") and torch.xpu.is_available())


class _Recording:
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
        devices = {"cuda": self._torch.cuda.is_available(), "xpu": _has_xpu(self._torch)}
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

    def finish(self) -> None:
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
        (self._folder / _NOTES).write_text(json.dumps(notes))
