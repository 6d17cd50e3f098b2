"""Turns the lines of one manifest, one by one, into the outcome of each capture.

docs/manifest.md has a row for each event. Lines about an engine carry its `target`; all others are
about the process that writes. Lines of salvage, in a separate file, name the process under `of`.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import Here, is_alive, known
from rlprof.types import Artifact, Clock, Target, Window
from rlprof_run._capture import TRIED, CaptureBuilder
from rlprof_run._clock import unbroken
from rlprof_run._fields import seconds_of, target_of, time_of, window_of
from rlprof_run._offsets import Offset
from rlprof_run._on_nodes import Collected
from rlprof_run._place import Place
from rlprof_run._run import Answer, Attached, CaptureResult, Process, Skipped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_run._run import ProcessState

_HEARTBEAT_S = 60
"""A process of another host is taken for dead if it has not written for this long; it writes a
clock every ten seconds."""


@attrs.frozen
class Missed:
    """A note of another process about a capture that should exist."""

    target: Target
    window: Window
    tool: str
    note: str
    mono: int
    request: str = ""
    is_fault: bool = True
    """Whether a capture should exist if there is none."""
    late: Mapping[str, Any] = attrs.field(factory=dict)
    """Fields of the capture that say how late it was."""


class ManifestReader:
    """Takes the lines in order; a line that does not fit is passed over."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.target: Target | None = None
        self.here: Here | None = None
        self.versions: Mapping[str, str] = {}
        self.devices: tuple[str, ...] = ()
        self.clocks: list[Clock] = []
        self.drafts: dict[tuple[Target | None, Window, str], CaptureBuilder] = {}
        self._requests: dict[tuple[Target | None, str], dict[str, Any]] = {}
        self.skipped: list[Skipped] = []
        self.missed: list[Missed] = []
        self.offsets: list[Offset] = []
        self.elsewhere: list[Place] = []
        self.wrote_elsewhere: list[Target] = []
        self.collected: list[Collected] = []
        self.ended = self.names_calls = False
        self.dropped = self.left_out = 0
        self._configuring: dict[tuple[Target | None, str], str] = {}
        self._ready: dict[tuple[Target | None, str], tuple[int | None, int | None]] = {}
        self._problems: list[str] = []
        self.attached: dict[tuple[str, Target], Attached] = {}

    def take(self, line: dict[str, Any]) -> None:
        """Take one line."""
        try:
            hear = getattr(self, f"_on_{line['event']}", None)
            if hear is not None:  # a later version may say more than we know
                hear(line)
        except (KeyError, TypeError, ValueError, OverflowError):
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
        return Process(
            self.name, self.target, self.here, clocks, state, self.versions, devices=self.devices
        )

    def captures(self, process: Process) -> list[CaptureResult]:
        """List the outcome of each capture."""
        times = [clock.monotonic_ns for clock in process.clocks]
        _, shifts = unbroken(process.clocks)
        return [
            draft.result(process, shifts[max(0, bisect_right(times, draft.opened_ns) - 1)])
            for draft in self.drafts.values()
        ]

    def answers(self, process: Process) -> list[Answer]:
        """List the outcomes of requests to this process and its engines."""
        found = [
            Answer(name, target or process.target, **fields)
            for (target, name), fields in self._requests.items()
        ]
        if process.state == "running":
            return found
        died = partial(attrs.evolve, state="unserved", error="the process died")
        return [died(one) if one.state == "waiting" else one for one in found]

    def problems(self, process: Process) -> list[str]:
        """List the problems outside of windows."""
        lines = []
        if self.dropped:
            lines.append(f"spans/{self.name}.jsonl: {self.dropped} spans could not be written")
        if self.left_out:
            lines.append(
                f"spans/{self.name}.jsonl: {self.left_out} spans are left out beyond spans.bytes; "
                "steps, phases and a summary of each step are there"
            )
        for (target, tool), error in self._configuring.items():
            if error or process.state != "running":
                what = error or "never returned"
                lines.append(f"{target or process.target}: {tool}: configure: {what}")
        return lines + [f"{process.target}: {reason}" for reason in self._problems]

    def _capture(self, line: Mapping[str, Any]) -> CaptureBuilder:
        return self.drafts[target_of(line), window_of(line), line["tool"]]

    def _on_process(self, line: dict[str, Any]) -> None:
        target, here = target_of(line), known(Here, line["here"])
        if target is None:
            raise ValueError(line)
        here, versions = attrs.evolve(here, pid=int(here.pid)), dict(line.get("versions") or {})
        self.devices = tuple(map(str, line.get("devices") or ()))
        self.target, self.here, self.versions = target, here, versions

    def _on_clock(self, line: dict[str, Any]) -> None:
        realtime_ns = time_of(line, "realtime_ns", 1 << 62)
        others = time_of(line, "monotonic_ns"), time_of(line, "bound_ns")
        self.clocks.append(Clock(realtime_ns, *others))

    def _on_opened(self, line: dict[str, Any]) -> None:
        ready = self._ready.pop((target_of(line), str(line["tool"])), (None, None))
        draft = CaptureBuilder(
            window_of(line), target_of(line), str(line["tool"]), time_of(line),
            str(line.get("scratch", "")), dict(line.get("asked") or {}),
            request=str(line.get("request") or ""), configuring_ns=ready[0], configured_ns=ready[1],
        )  # fmt: skip
        if line.get("lighter"):
            draft.notes.append(f"recorded less than asked: {line['lighter']}")
        key = draft.target, draft.window, draft.tool
        self.drafts.setdefault(key, draft)  # a second line changes nothing

    def _on_configuring(self, line: dict[str, Any]) -> None:
        key = target_of(line), str(line["tool"])
        self._configuring[key], self._ready[key] = "", (time_of(line), None)

    def _on_configured(self, line: dict[str, Any]) -> None:
        key, error = (target_of(line), str(line["tool"])), str(line.get("error") or "")
        self._ready[key] = self._ready.get(key, (None, None))[0], time_of(line)
        self._configuring.pop(key, None)
        if error:
            self._configuring[key] = error

    def _on_attached(self, line: dict[str, Any]) -> None:
        target = target_of(line)
        if target is not None:
            role = str(line.get("role") or target.role)
            ranks = tuple(int(rank) for rank in line.get("ranks") or ())
            self.attached[role, target] = Attached(role, target, ranks, self.name)

    def _on_calls(self, _: dict[str, Any]) -> None:
        self.names_calls = True

    def _on_problem(self, line: dict[str, Any]) -> None:
        self._problems.append(str(line["reason"]))

    def _on_started(self, line: dict[str, Any]) -> None:
        draft = self._capture(line)
        start_s, started_ns = seconds_of(line), time_of(line)
        draft.applied = dict(line.get("applied") or {})
        draft.unsupported = dict(line.get("unsupported") or {})
        draft.start_s, draft.started_ns = start_s, started_ns

    def _on_closed(self, line: dict[str, Any]) -> None:
        draft = self._capture(line)
        draft.stop_s, draft.closed_ns = seconds_of(line), time_of(line)
        if line.get("reason", "end") != "end":
            draft.notes.append(f"closed early: {line['reason']}")
        if line.get("late"):
            draft.notes.append(f"closed late: {line['late']}")

    def _on_failed(self, line: dict[str, Any]) -> None:
        draft = self._capture(line)
        hook, error = line["hook"], line["error"]
        draft.failed = True
        if draft.salvaged:
            draft.salvage_failed(str(error))
        else:
            draft.notes.append(f"{hook}: {error}")

    def _on_artifact(self, line: dict[str, Any]) -> None:
        draft = self._capture(line)
        artifact = known(Artifact, line["artifact"])
        events = None if artifact.events is None else int(artifact.events)
        text_size = None if artifact.text_size is None else int(artifact.text_size)
        artifact = attrs.evolve(
            artifact, path=str(artifact.path), command=str(artifact.command or ""),
            size=int(artifact.size), events=events, text_size=text_size,
        )  # fmt: skip
        draft.artifacts[artifact.path] = artifact
        if artifact.note:
            draft.notes.append(str(artifact.note))

    def _on_exported(self, line: dict[str, Any]) -> None:
        draft = self._capture(line)
        export_s = seconds_of(line)
        if "of" not in line:  # a salvager's clock is another
            draft.exported_ns = time_of(line)
        draft.exported, draft.export_s = True, export_s
        if draft.salvaged and not (draft.artifacts or draft.failed):
            draft.salvage_failed("the tool left nothing")

    def _on_salvaged(self, line: dict[str, Any]) -> None:
        draft = self._capture(line)
        draft.salvaged = True
        draft.failed = False
        notes = [note.partition("; raw data are kept in ")[0] for note in draft.notes]
        draft.notes = [note for note in notes if not note.startswith(TRIED)]
        draft.notes.append(str(line["note"]))

    def _on_request(self, line: dict[str, Any]) -> None:
        asked, error = dict(line["request"]), str(line.get("error") or "")
        self._requests[target_of(line), str(asked["id"])] = {
            "asked": asked, "state": "refused" if error else "waiting", "steps": (), "error": error
        }  # fmt: skip

    def _on_served(self, line: dict[str, Any]) -> None:
        fields = self._requests[target_of(line), line["request"]]
        fields["error"] = str(line.get("error") or "")
        fields["steps"] = tuple(int(step) for step in line["steps"])
        fields["state"] = "unserved" if fields["error"] else "served"

    def _on_clock_offset(self, line: dict[str, Any]) -> None:
        self.offsets.append(Offset.of_line(line))

    def _on_late(self, line: dict[str, Any]) -> None:
        hook, tool, late_s = str(line["hook"]), str(line["tool"]), seconds_of(line)
        target = target_of(line)
        if target is not None and late_s is not None:
            what = {"start": "began", "stop": "ended"}.get(hook, f"{hook} came")
            note = f"{what} {late_s:.1f} s after it was asked to: it was busy"
            mono = time_of(line)
            late = {f"late_{hook}_s": late_s} if hook in ("start", "stop") else {}
            self.missed.append(
                Missed(target, window_of(line), tool, note, mono, is_fault=False, late=late)
            )

    def _on_missed(self, line: dict[str, Any]) -> None:
        target, window, note = target_of(line), window_of(line), f"{line['hook']}: {line['error']}"
        if target is not None:
            request, mono = str(line.get("request") or ""), time_of(line)
            self.missed.append(Missed(target, window, str(line["tool"]), note, mono, request))

    def _on_elsewhere(self, line: dict[str, Any]) -> None:
        self.elsewhere.append(Place.of_line(line))
        target = target_of(line)
        if target is not None:
            self.wrote_elsewhere.append(target)

    def _on_collected(self, line: dict[str, Any]) -> None:
        self.collected.append(Collected.of_line(line))

    def _on_dropped(self, line: dict[str, Any]) -> None:
        self.dropped += int(line["spans"])

    def _on_left_out(self, line: dict[str, Any]) -> None:
        self.left_out = max(self.left_out, int(line["spans"]))

    def _on_skipped(self, line: dict[str, Any]) -> None:
        target = target_of(line) or self.target
        if target is not None:
            request = str(line.get("request") or "")
            self.skipped.append(Skipped(int(line["step"]), target, str(line["reason"]), request))

    def _on_ended(self, line: dict[str, Any]) -> None:  # noqa: ARG002 -- all listeners are alike
        self.ended = True
