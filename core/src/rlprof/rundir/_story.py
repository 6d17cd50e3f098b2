"""The lines of one manifest, told one by one, as what became of each capture.

| event      | says                                                       | written             |
|------------|------------------------------------------------------------|---------------------|
| `process`  | who writes: target, host, pid, versions                    | first               |
| `clock`    | both clocks at one instant                                 | every 10 s, at edges |
| `opened`   | a tool is about to record a window, with its options       | before `start`      |
| `started`  | `start` returned: seconds, applied, unsupported            | after it            |
| `closed`   | `stop` returned: seconds, and the reason if closed early   | after it            |
| `failed`   | a hook raised, overran or was not called: hook, error      | when it happens     |
| `artifact` | a file exists                                              | after `export`      |
| `exported` | `export` returned: seconds                                 | after its artifacts |
| `skipped`  | a window was due and was not recorded: step, reason        | when it is known    |
| `dropped`  | spans that were more than memory holds: how many           | near the end        |
| `ended`    | the session was closed                                     | last                |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir._process import Here, is_alive
from rlprof.rundir._run import CaptureResult, Process, Skipped
from rlprof.types import Artifact, Clock, Target, Window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.rundir._run import CaptureState, ProcessState

_HEARTBEAT_S = 60
"""A process of another host that has not written for so long is taken for dead; it writes a clock
every ten seconds."""


@attrs.define
class _Draft:
    """One capture, while the lines about it come in."""

    opened: Mapping[str, Any]
    started: Mapping[str, Any] = attrs.field(factory=dict)
    closed: Mapping[str, Any] | None = None
    exported: Mapping[str, Any] | None = None
    artifacts: dict[str, Artifact] = attrs.field(factory=dict)
    notes: list[str] = attrs.field(factory=list)
    failed: bool = False

    def result(self, process: Process) -> CaptureResult:
        return CaptureResult(
            window=Window(**self.opened["window"]),
            target=process.target,
            tool=self.opened["tool"],
            process=process.name,
            state=self._state(process),
            scratch=str(self.opened.get("scratch", "")),
            asked=self.opened.get("asked") or {},
            applied=self.started.get("applied") or {},
            unsupported=self.started.get("unsupported") or {},
            artifacts=tuple(self.artifacts.values()),
            notes=tuple(self.notes),
            opened_ns=self.opened["mono"],
            closed_ns=self.closed["mono"] if self.closed else None,
            start_s=self.started.get("seconds"),
            stop_s=self.closed.get("seconds") if self.closed else None,
            export_s=self.exported.get("seconds") if self.exported else None,
        )

    def _state(self, process: Process) -> CaptureState:
        over = process.state in ("ended", "died")
        if self.artifacts:
            partial = any(artifact.status != "whole" for artifact in self.artifacts.values())
            return "partial" if partial or self.failed else "whole"
        if self.failed:
            return "failed"
        if self.exported is not None:
            return "empty"
        if self.closed is None:
            return "lost" if over else "recording"
        return "lost" if over else "exporting"


class Story:
    """Takes the lines in order; a line that does not fit is passed over."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.target: Target | None = None
        self.here: Here | None = None
        self.versions: Mapping[str, str] = {}
        self.clocks: list[Clock] = []
        self.drafts: dict[tuple[str, str], _Draft] = {}
        self.skipped: list[Skipped] = []
        self.ended = False

    def tell(self, line: dict[str, Any]) -> None:
        """Take one line."""
        try:
            hear = getattr(self, f"_on_{line['event']}", None)
            if hear is not None:  # a later version may say more than we know
                hear(line)
        except (KeyError, TypeError, ValueError):
            return

    def process(self, *, age_s: float) -> Process:
        """Describe the process; *age_s* is how long ago it wrote last."""
        if self.target is None or self.here is None:
            raise ValueError(self.name)
        state: ProcessState = "ended"
        if not self.ended:
            alive = is_alive(self.here)
            if alive is None:
                alive = age_s < _HEARTBEAT_S
            state = "running" if alive else "died"
        clocks = tuple(sorted(self.clocks, key=lambda clock: clock.monotonic_ns))
        return Process(self.name, self.target, self.here, clocks, state, self.versions)

    def _draft(self, line: Mapping[str, Any]) -> _Draft:
        return self.drafts[Window(**line["window"]).id, line["tool"]]

    def _on_process(self, line: dict[str, Any]) -> None:
        self.target = Target(**line["target"])
        self.here = Here(**line["here"])
        self.versions = line.get("versions") or {}

    def _on_clock(self, line: dict[str, Any]) -> None:
        self.clocks.append(Clock(line["realtime_ns"], line["monotonic_ns"], line["bound_ns"]))

    def _on_opened(self, line: dict[str, Any]) -> None:
        self.drafts[Window(**line["window"]).id, line["tool"]] = _Draft(line)

    def _on_started(self, line: dict[str, Any]) -> None:
        self._draft(line).started = line

    def _on_closed(self, line: dict[str, Any]) -> None:
        draft = self._draft(line)
        draft.closed = line
        if line.get("reason", "end") != "end":
            draft.notes.append(f"closed early: {line['reason']}")

    def _on_failed(self, line: dict[str, Any]) -> None:
        draft = self._draft(line)
        draft.failed = True
        draft.notes.append(f"{line['hook']}: {line['error']}")

    def _on_artifact(self, line: dict[str, Any]) -> None:
        draft = self._draft(line)
        artifact = Artifact(**line["artifact"])
        draft.artifacts[artifact.path] = artifact
        if artifact.note:
            draft.notes.append(artifact.note)

    def _on_exported(self, line: dict[str, Any]) -> None:
        self._draft(line).exported = line

    def _on_skipped(self, line: dict[str, Any]) -> None:
        if self.target is not None:
            self.skipped.append(Skipped(line["step"], self.target, line["reason"]))

    def _on_ended(self, line: dict[str, Any]) -> None:  # noqa: ARG002 -- all listeners are alike
        self.ended = True
