"""The tool `torch`: torch.profiler around a window, with the least done while the step waits.

In the process: start, ranges, stop, and the raw `.json` that Kineto writes. All else (strict
JSON, compression, the clock) is done by `export` in a helper process.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError, Ready, hookimpl
from rlprof_torch._forks import guard_forks
from rlprof_torch._kineto import finish
from rlprof_torch._options import TorchOptions, advise_torch, is_unsafe, lighter_torch
from rlprof_torch._others import OTHERS
from rlprof_torch._recording import NOTES, TorchRecording, has_xpu, ignore_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof import Capture
    from rlprof.types import Place, RunsOn


@attrs.define(eq=False)  # identity: pluggy compares plugins
class Torch:
    """Record windows with torch.profiler: operators, kernels, memory, stacks."""

    Options = TorchOptions
    claims = {"kineto": "process", "cupti": "process"}  # noqa: RUF012 -- read, never written

    advise = staticmethod(hookimpl(advise_torch))
    lighter = staticmethod(hookimpl(lighter_torch))

    options: TorchOptions = attrs.field(factory=TorchOptions)
    _recording: TorchRecording | None = None
    _has_device: bool = False

    @staticmethod
    def sample(rounds: int) -> None:
        """Do the work that makes the most events: small operators, one after another."""
        import torch

        values = torch.ones(8, 8)
        for _ in range(rounds):
            values = (values @ values).clamp(max=1.0)

    def _runs_on(self) -> RunsOn:
        """On the CPU, with all threads, any thread may start it.

        With a device that is likely so and not proven, and the wrong answer is an empty trace.
        """
        free = not self._has_device and not self._lacks_all_threads()
        return "process" if free else "thread"

    @hookimpl
    def configure(self, place: Place, options: TorchOptions) -> Ready | None:
        """Import torch, and the modules that its profiler would import in the first `start`."""
        self.options = options
        if place == "launch":
            return None
        try:
            import torch
        except (ImportError, RuntimeError) as exc:  # Runtime: a package that torch loads by itself
            cure = "repair that package, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0"
            if isinstance(exc, ImportError):
                cure = "install torch in this environment"
            raise CaptureError(f"torch: cannot be imported: {exc}; {cure}") from exc
        # hasattr(torch, "_inductor") in profile.__init__ pulls this in: 2 to 4 s, better now.
        __import__("torch._inductor.config")
        self._has_device = torch.cuda.is_available() or has_xpu(torch)
        # 2.13 prints two lines a window and no level keeps errors alone; export finds out what
        # is missing from a trace, so silence costs nothing.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        guard_forks()
        ignore_warnings()
        OTHERS.watch(torch)
        runs_on = self._runs_on()
        with OTHERS.lock:
            if runs_on == "process" and not OTHERS.is_busy(torch):
                # Kineto wants its first start on the thread that imported it.
                with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
                    pass
        return Ready(runs_on)

    @hookimpl
    def start(self, folder: Path) -> TorchRecording:
        """Start a new profiler; refuse if there is one, because both would lose their data."""
        import torch

        with OTHERS.lock:
            if OTHERS.is_busy(torch):
                raise CaptureError(
                    "another torch profiler is active or prepared in this process; this window "
                    "does not record (two at once lose both traces)"
                )
            lacks = self._lacks_all_threads()
            recording = TorchRecording(torch, self.options, folder, lacks)
            self._recording = OTHERS.recording = recording
            recording.begin()
        return recording

    @hookimpl
    def stop(self) -> None:
        """Stop, and let Kineto write its raw trace: both hold the GIL, 12 us an event."""
        recording, self._recording = self._recording, None
        if recording is not None:
            try:
                recording.finish()
            finally:
                OTHERS.recording = None

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Make each raw trace strict, compressed and placed on the clock."""
        try:
            notes = json.loads((folder / NOTES).read_bytes())
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
        header = {**capture.header, "applied": notes.get("applied") or {}}
        marks = [(int(before), int(after)) for before, after in part.get("marks", [])]
        try:
            found = finish(folder / str(part["file"]), out / name, header=header, marks=marks)
        except (FileNotFoundError, ValueError) as exc:
            raise CaptureError(f"the raw trace cannot be read: {exc}") from exc
        remarks = [notes["note"]] if notes.get("note") else []
        if found.truncated:
            remarks.append("the raw trace was cut: what was whole is kept")
        if found.dropped:
            remarks.append(f"{found.dropped} events that were no JSON could not be kept")
        if not found.device_events and notes.get("applied", {}).get("device"):
            remarks.append(f"the trace has no event of {notes['applied']['device']}")
        return Artifact(
            path=name,
            kind="trace",
            format="chrome-trace",
            status="partial" if found.truncated or found.dropped else "whole",
            note="; ".join(remarks),
            events=found.events,
            text_size=found.text_size,
        )

    def _lacks_all_threads(self) -> str:
        """Say why not all threads are recorded; empty if they are."""
        asked = self.options.all_threads
        if asked is False:
            return "all_threads: false"
        if "memory" in self.options.contents:
            return "torch records memory of one thread only"  # measured: no [memory] events else
        torch: Any = sys.modules.get("torch")
        known = str(torch._C._profiler._ExperimentalConfig.__init__.__doc__) if torch else ""
        if torch and "profile_all_threads" not in known:
            return f"torch {torch.__version__} cannot; 2.8 can"
        if torch and asked is None and is_unsafe(torch.__version__):
            return "not safe with this torch"
        return ""
