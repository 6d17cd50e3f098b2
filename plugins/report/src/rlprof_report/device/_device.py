"""The device figures of a run: each trace, then the traces of each role together."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_report._slices import ENDING, engine_requests
from rlprof_report.device._roles import by_role, late_ranks, times_of
from rlprof_report.device._tops import tops
from rlprof_report.device._trace import Stretch, figures_of
from rlprof_report.device.values import CaptureDevice, Device
from rlprof_traces import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof import Target
    from rlprof.types import Artifact
    from rlprof_report.device._trace import Meeting, TraceFigures
    from rlprof_run import CaptureResult, Run

_PACKED = 12
"""How many times smaller gzip makes a trace, if its size is unknown."""


def device_of(run: Run) -> Device | None:
    """Read the traces of all windows of *run*, or of the part of one; None: there are none.

    Figures are those of the window, from its begin to its end.
    """
    hosts = {one.name: one.here.host for one in run.processes}
    looked: list[tuple[CaptureDevice, TraceFigures]] = []
    meetings: defaultdict[tuple[str, ...], dict[int, Sequence[Meeting]]] = defaultdict(dict)
    requests: dict[Target, list[dict[str, Any]]] = {}
    notes: list[str] = []
    for capture in run.captures:
        target, window = capture.target, capture.window.id
        for artifact in capture.artifacts:
            if artifact.kind != "trace":
                continue
            try:
                if artifact.path.endswith(ENDING):
                    file, faults = run.path / artifact.path, list[str]()
                    requests.setdefault(target, []).extend(engine_requests(file, 0, faults))
                    notes += [f"{artifact.path}: {words}" for words in faults]
                    continue
                stretch = _stretch(capture)
                found = figures_of(run.path / artifact.path, stretch)
            except UnreadableError as exc:
                notes.append(f"{artifact.path}: {exc}")
                continue
            shown = _shown(capture, artifact, found, hosts[capture.process])
            if capture.closed_ns is not None:
                window_s = (stretch.until_ns - stretch.from_ns) / 1e9
                shown = attrs.evolve(shown, window_s=window_s, compile_s=found.compile_s)
            looked.append((shown, found))
            # A rank of several traces (workers, parts) is compared with the same ones of the
            # others. Replicas serve by themselves: what they do at the same time is no collective.
            key = target.role, window, capture.tool, artifact.part, str(target.replica)
            meetings[key].setdefault(target.rank, found.meetings)
    if not (looked or requests or notes):
        return None
    late = [
        one
        for (role, window, *_), ranks in meetings.items()
        for one in late_ranks(role, window, ranks)
    ]
    return Device(
        captures=tuple(shown for shown, _ in looked),
        roles=tuple(by_role(looked)),
        late=tuple(sorted(late, key=lambda one: (-one.late_s, one.role, one.window, one.rank))),
        requests=tuple(times_of(one, requests[one]) for one in sorted(requests, key=str)),
        notes=tuple(notes),
    )


def json_bytes(run: Run) -> int:
    """Estimate how many bytes of JSON `device_of` would read."""
    return sum(
        artifact.text_size or artifact.size * _PACKED
        for capture in run.captures
        for artifact in capture.artifacts
        if artifact.kind == "trace"
    )


def _shown(
    capture: CaptureResult, artifact: Artifact, found: TraceFigures, host: str
) -> CaptureDevice:
    """Return the line of one trace."""
    status = () if artifact.status == "whole" else (f"{artifact.status}: {artifact.note}",)
    target = capture.target
    return CaptureDevice(
        file=artifact.path,
        window=capture.window.id,
        target=str(target),
        role=target.role,
        rank=target.rank,
        device_events=found.device_events,
        graph_kernels=found.graph_kernels,
        temporal=found.temporal,
        idle=found.idle,
        kernels=tops(found.kernels),
        operators=tops(found.operators),
        memory=found.memory,
        notes=(*status, *found.notes),
        host=host,
    )


def _stretch(capture: CaptureResult) -> Stretch:
    """Return the window: from the begin of the tool's start to the begin of its stop."""
    from_ns = capture.opened_ns
    if capture.closed_ns is None:
        return Stretch(from_ns, 1 << 62, capture.clock_shift_ns)
    until_ns = capture.closed_ns - round((capture.stop_s or 0.0) * 1e9)
    return Stretch(from_ns, max(from_ns, until_ns), capture.clock_shift_ns)
