"""The tool `npu`: torch_npu.profiler around a window, with little work while the step waits.

In the process: start, ranges, stop. A helper process does everything else in `export`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Advice, CaptureError, hookimpl
from rlprof_npu._export import export
from rlprof_npu._library import import_library, is_recording, refuse_beside_others
from rlprof_npu._options import NpuOptions, conflicts, lighter
from rlprof_npu._recording import LEFT_RUNNING, NpuRecording

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof import Artifact, Capture, Target, Window
    from rlprof.config import Limits
    from rlprof.types import Place


@attrs.define(eq=False)  # identity: pluggy compares plugins
class Npu:
    """Experimental: record windows on Ascend NPUs with torch_npu.profiler."""

    Options = NpuOptions
    runs_on = "thread"  # stopped on another thread, torch_npu leaves its recorder running
    claims = {"kineto": "process", "npu": "device"}  # noqa: RUF012 -- read, never written

    lighter = staticmethod(hookimpl(lighter))

    options: NpuOptions = attrs.field(factory=NpuOptions)
    _library: Any = None
    _recording: NpuRecording | None = None

    @staticmethod
    def sample(rounds: int) -> None:
        """Do the work with the most events: small operators, one after the other."""
        import torch

        values = torch.ones(8, 8)
        for _ in range(rounds):
            values = (values @ values).clamp(max=1.0)

    @hookimpl
    def advise(self, options: NpuOptions, limits: Limits) -> list[Advice]:
        """Core must wait longer for an export than the analysis may take."""
        most, got = limits.export_timeout_s, options.analysis_timeout_s
        words = f"must be less than limits.export_timeout_s, {most:g}; got {got:g}"
        return [Advice(words, "analysis_timeout_s", "fault")] if got >= most else []

    @hookimpl
    def configure(self, place: Place, options: NpuOptions) -> None:
        """Refuse options that conflict; in the process, check that there is an NPU."""
        self.options = options
        found = conflicts(options)
        if found:
            raise CaptureError("; ".join(found))
        if place == "process":
            refuse_beside_others()
            self._library = import_library()

    @hookimpl
    def start(self, window: Window, target: Target, folder: Path) -> NpuRecording:
        """Start a new profiler; refuse if one is running, for both would lose data."""
        import torch

        if self._recording is not None:
            raise CaptureError("a window is open already")
        if LEFT_RUNNING.is_set():
            raise CaptureError(
                "an earlier window ended on another thread than it began on, and torch_npu may "
                "still be recording; end windows on the thread that began them, and restart"
            )
        refuse_beside_others()
        if is_recording(torch):
            raise CaptureError(
                "another profiler of torch or torch_npu is active in this process and continues; "
                "this window does not record (two at once lose both traces)"
            )
        library = self._library or import_library()
        recording = NpuRecording(torch, library, self.options, target, window)
        try:
            recording.begin(folder)
        except BaseException:
            recording.abandon()
            raise
        self._recording = recording
        return recording

    @hookimpl
    def stop(self) -> None:
        """Stop, wait for the device, and leave the raw data."""
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.end()

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Let torch_npu analyse the raw data, and put its trace on the wall clock."""
        return export(capture, folder, out)
