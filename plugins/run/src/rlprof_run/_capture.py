"""One capture, while the lines of a manifest about it come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof_run._run import CaptureResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.types import Artifact, Target, Window
    from rlprof_run._run import CaptureState, Process

TRIED = "salvage was tried"
"""Begins the note of a capture that salvage made nothing of."""

_LONG_S = 0.1


def is_untried(capture: CaptureResult) -> bool:
    """Whether *capture* was lost, and salvage has not tried it."""
    return capture.state == "lost" and not any(note.startswith(TRIED) for note in capture.notes)


@attrs.define
class CaptureBuilder:
    """One capture, while the lines about it come in."""

    window: Window
    target: Target | None
    tool: str
    opened_ns: int
    scratch: str
    asked: Mapping[str, Any]
    applied: Mapping[str, Any] = attrs.field(factory=dict)
    unsupported: Mapping[str, str] = attrs.field(factory=dict)
    closed_ns: int | None = None
    start_s: float | None = None
    stop_s: float | None = None
    export_s: float | None = None
    started_ns: int | None = None
    exported_ns: int | None = None
    artifacts: dict[str, Artifact] = attrs.field(factory=dict)
    notes: list[str] = attrs.field(factory=list)
    request: str = ""
    configuring_ns: int | None = None
    configured_ns: int | None = None
    failed: bool = False
    exported: bool = False
    salvaged: bool = False

    def result(self, process: Process, shift_ns: int) -> CaptureResult:
        state = self._state(process)
        return CaptureResult(
            window=self.window,
            target=self.target or process.target,
            tool=self.tool,
            process=process.name,
            state=state,
            scratch=self.scratch,
            asked=self.asked,
            applied=self.applied,
            unsupported=self.unsupported,
            artifacts=tuple(self.artifacts.values()),
            request=self.request,
            notes=(*self._waited(), *self.notes),
            opened_ns=self.opened_ns,
            closed_ns=self.closed_ns,
            clock_shift_ns=shift_ns,
            start_s=self.start_s,
            stop_s=self.stop_s,
            export_s=self.export_s,
            started_ns=self.started_ns,
            exported_ns=self.exported_ns,
            configuring_ns=self.configuring_ns,
            configured_ns=self.configured_ns,
        )

    def _waited(self) -> list[str]:
        """Say how long a request waited for its tool to be configured, if that was long."""
        if not self.request or self.configuring_ns is None or self.configured_ns is None:
            return []
        seconds = (self.configured_ns - self.configuring_ns) / 1e9
        words = f"{self.tool} was configured first, which took {seconds:.1f} s"
        return [words] if seconds >= _LONG_S else []

    def salvage_failed(self, why: str) -> None:
        """Put one note in the place of the one that salvage expected."""
        self.notes[-1:] = [f"{TRIED}: {why}"]

    def _state(self, process: Process) -> CaptureState:
        over = process.state in ("ended", "died")
        unclosed = self.salvaged and self.closed_ns is None
        if self.artifacts:
            if not self.exported and not over:
                return "exporting"  # perhaps more are to come
            whole = all(artifact.status == "whole" for artifact in self.artifacts.values())
            lacks = self.failed or unclosed or not self.exported
            return "whole" if whole and not lacks else "partial"
        if self.failed:
            return "lost" if unclosed else "failed"
        if self.exported:
            return "lost" if unclosed else "empty"
        if self.closed_ns is None:
            return "lost" if over else "recording"
        return "lost" if over else "exporting"
