"""Figure 13: what rlprof itself does, from configure to export, and the steps it touches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report.values.step import Touch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from rlprof import Run
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans.recorded import Recorded
    from rlprof_run import CaptureResult


@attrs.frozen
class Recording:
    """One window of one target by the clock of the run, ns, with what opening and closing took."""

    process: str
    steps: range
    """The trainer's numbers."""
    start: int
    end: int
    """When the stop began, if there was one."""
    touches: tuple[Touch, ...]


def recordings_of(run: Run, epoch: int) -> Iterator[Recording]:
    """Say when each capture was open and when it was being opened, closed and exported."""
    for capture in run.captures:
        process = run.by_name.get(capture.process)
        end = capture.closed_ns
        if process and end is None and capture.state in ("recording", "lost"):
            end = process.clocks[-1].realtime_ns
        if process and end is not None:
            yield _recording(capture, end, epoch)


def _recording(capture: CaptureResult, closed: int, epoch: int) -> Recording:
    start, end = capture.opened_ns, closed
    spans = []
    if capture.configuring_ns is not None and capture.configured_ns is not None:
        spans.append(("configure", capture.configuring_ns, capture.configured_ns))
    if capture.started_ns is not None:
        spans.append(("start", start, capture.started_ns))
    elif capture.start_s is not None:
        spans.append(("start", start, start + int(capture.start_s * 1e9)))
    if capture.closed_ns is not None and capture.stop_s is not None:
        end = closed - int(capture.stop_s * 1e9)
        spans.append(("stop", end, closed))
    if capture.exported_ns is not None and capture.export_s is not None:
        after = capture.exported_ns
        spans.append(("export", after - int(capture.export_s * 1e9), after))
    touches = tuple(
        Touch(
            what=what,  # type: ignore[arg-type]
            target=str(capture.target),
            tool=capture.tool,
            window=capture.window.id,
            start_s=(one - epoch) / 1e9,
            end_s=(other - epoch) / 1e9,
            process=capture.process,
        )
        for what, one, other in spans
        if other > one
    )
    steps = range(capture.window.start_step, capture.window.end_step)
    return Recording(capture.process, steps, start, max(start, end), touches)


@attrs.frozen(eq=False)
class Touched:
    """The effect of recording on the steps, by their places."""

    recorded: set[int]
    touches: dict[int, list[Touch]]
    cost_ns: dict[int, list[tuple[int, int]]]
    """The stretches of starts and stops that lie in the step."""


def touched_of(recordings: list[Recording], recorded: Recorded, timeline: Timeline) -> Touched:
    """Return which steps had an open window, and which a start, a stop or an export touches.

    A rank that starts or stops late holds up the others where they next meet. So the step is
    touched for any process: by the time of the leader, and by the steps of that rank. An export
    runs in parallel with training and counts only on the leading process.
    """
    open_in: set[int] = set()
    touches: dict[int, list[Touch]] = {}
    costs: dict[int, list[tuple[int, int]]] = {}
    leader, epoch = recorded.processes[timeline.leader].name, int(timeline.starts[0])
    rows = recorded.steps[recorded.steps["process"] != timeline.leader]
    places = timeline.of(rows)
    rows, places = rows[places >= 0], places[places >= 0]
    edges = np.searchsorted(rows["process"], np.arange(len(recorded.processes) + 1))
    numbers = {process.name: number for number, process in enumerate(recorded.processes)}
    for one in recordings:
        own = slice(*edges[numbers[one.process] :][:2])
        for touch in one.touches:
            if touch.what == "export" and one.process != leader:
                continue
            start, end = (epoch + round(s * 1e9) for s in (touch.start_s, touch.end_s))
            by_time = _during(timeline, start, end)
            is_in = (rows["start"][own] < end) & (rows["end"][own] > start)
            for place in by_time | set(places[own][is_in].tolist()):
                touches.setdefault(place, []).append(touch)
                if touch.what != "export" and place in by_time:
                    bounds = int(timeline.starts[place]), int(timeline.ends[place])
                    costs.setdefault(place, []).append((max(start, bounds[0]), min(end, bounds[1])))
        open_in |= _recorded(one, timeline, touches.keys())
    return Touched(open_in, touches, costs)


def _recorded(one: Recording, timeline: Timeline, touched: AbstractSet[int]) -> set[int]:
    """Return the steps in which the window was open, less those that its start or stop touches.

    Members of a fleet may close a window when their driver is already in the next step.
    """
    inside = _during(timeline, one.start, one.end)
    own = {place for place in inside if int(timeline.numbers[place]) in one.steps}
    edges = {
        place
        for place in (inside - own) & touched
        if (timeline.starts[place] < one.start) != (one.end < timeline.ends[place])
    }
    return inside - edges if own else inside


def _during(timeline: Timeline, start: int, end: int) -> set[int]:
    found = (timeline.starts < end) & (timeline.ends > start)
    return set(np.flatnonzero(found).tolist())
