"""Files of spans that end before the run does, and the steps that lack spans because of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._spans.rows import NO_STEP
from rlprof_run import CUT, lost_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlprof import Run
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans.recorded import Recorded


@attrs.frozen
class End:
    """The lost part of one file of spans."""

    sentence: str
    """The file, and the lost part, in words."""
    place: int | None = None
    """The first step, by its place, that lacks spans; None: no step is known to."""
    problem: str = ""
    """The same in the words of the reader of the run."""
    is_of_members: bool = False
    """Whether the driver of a fleet wrote it about its members."""
    is_loss: bool = True
    """Whether the file had more; one of a process that died need not."""


def ends_of(run: Run, recorded: Recorded, timeline: Timeline | None) -> Iterator[End]:
    """Yield the files that are cut, empty or gone, then those that end before others do."""
    lost = lost_spans(run.path, run.processes, run.attached)
    for file, why in lost.items():
        yield _lost(file, why, recorded, timeline)
    if run.is_running or timeline is None:
        return
    early = dict(_early(recorded, timeline))
    unwritten = (one for one in run.problems if one.endswith("spans could not be written"))
    dropped = {one.partition(": ")[0] for one in unwritten}
    for place, process in enumerate(recorded.processes):
        file, has_died = f"spans/{process.name}.jsonl", process.state == "died"
        at = _since_death(place, recorded, timeline) if has_died else None
        if place in early and file not in lost:
            step, end = early[place]
            is_whole = process.state == "ended" and file not in dropped
            later = np.flatnonzero(timeline.numbers > step)
            at = int(later[0]) if at is None and len(later) and not is_whole else at
            why = "ends early, its process died" if has_died else "is cut"
            target = process.target
            what = f"{target.role} {target.rank} ended" if is_whole else f"{file} {why}: it ends"
            sentence = f"{what} at step {step}, others at step {end}."
            yield End(sentence, at, is_loss=not has_died and not is_whole)
        elif at is not None:
            yield End("", at, is_loss=False)


def whole_of(ends: Iterable[End], recorded: Recorded, timeline: Timeline) -> int:
    """Count the steps up to the first that lacks spans, or the last if an exception ended it.

    If a cut file leaves fewer than 3, its steps count in spite of that, for there is nothing else.
    """
    kept = [at for one in ends if (at := one.place) is not None and (at > 2 or not one.is_loss)]
    whole = len(timeline) - max(timeline.unfinished, _is_broken_off(recorded, timeline))
    return min([*kept, whole])


def _is_broken_off(recorded: Recorded, timeline: Timeline) -> bool:
    """Whether an exception left the last phase of a process in the last step: none followed it."""
    rows = recorded.phases[timeline.of(recorded.phases) == len(timeline) - 1]
    rows = rows[np.argsort(rows["end"], kind="stable")]
    last = dict(rows[["process", "broken_off"]].tolist())  # of each process the last one stays
    return any(last.values())


def _lost(file: str, why: str, recorded: Recorded, timeline: Timeline | None) -> End:
    """Say which part of a damaged file is missing, and from which step on."""
    named = [f"spans/{one.name}.jsonl" for one in recorded.processes]
    place = named.index(file) if file in named else None
    target = None if place is None else recorded.processes[place].target
    what = f"spans of {target.role} {target.rank}" if target else "phases of the fleet's members"
    at = None
    if why == CUT and timeline is not None:
        at = (
            _whole_batches(recorded, timeline)
            if place is None
            else _end_of(place, recorded, timeline)
        )
    if timeline is None or at is None:
        sentence = f"{file} {why}: {what} are missing."
    elif at < len(timeline):
        sentence = f"{file} is cut: {what} are missing from step {timeline.numbers[at]} on."
    else:
        sentence, at = f"{file} {why}: the last {what} are missing.", None
    return End(sentence, at, problem=f"{file}: {why}", is_of_members=target is None)


def _end_of(place: int, recorded: Recorded, timeline: Timeline) -> int | None:
    """Return the first step after the end of the spans of a process."""
    own = recorded.steps[recorded.steps["process"] == place]
    if len(own):  # by the middle of steps, for no two ranks end one at the same time
        return _step_at((timeline.starts + timeline.ends) // 2, own["end"])
    tables = (recorded.phases[~recorded.phases["of_fleet"]], recorded.parts, recorded.others)
    ends = [one["end"][one["process"] == place] for one in tables]
    return _step_at(timeline.ends, np.concatenate(ends))


def _whole_batches(recorded: Recorded, timeline: Timeline) -> int | None:
    """Return the first step of the last batch, in which a driver wrote of one member at a time."""
    rows = recorded.phases[recorded.phases["of_fleet"]]
    seen: set[int] = set()
    at = len(rows)
    for process in rows["process"][::-1].tolist():
        if process in seen and process != rows["process"][at]:
            break
        seen.add(process)
        at -= 1
    return _step_at(timeline.ends, rows["start"][at : at + 1]) if at < len(rows) else None


def _step_at(edges: np.ndarray, times: np.ndarray) -> int | None:
    return int(np.searchsorted(edges, times.max(), side="right")) if len(times) else None


def _since_death(place: int, recorded: Recorded, timeline: Timeline) -> int | None:
    """Return the first step that a process which died did not write to its end.

    Steps of a fleet are its driver's, which goes on or not if a member dies.
    """
    targets = recorded.processes[place].target, recorded.processes[timeline.leader].target
    at = None
    if timeline.leads_fleet and place == timeline.leader:  # it writes of members last
        of_fleet = recorded.phases["of_fleet"]
        at = _step_at(timeline.ends, recorded.phases["end"][of_fleet])
    elif not timeline.leads_fleet and targets[0].role == targets[1].role:
        at = _end_of(place, recorded, timeline)
    return at if at is not None and at < len(timeline) else None


def _early(recorded: Recorded, timeline: Timeline) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield processes whose spans end two steps or more before those of others, and both steps."""
    rows = recorded.steps
    if timeline.leads_fleet:
        rows = np.concatenate([rows, recorded.phases])
    rows = rows[rows["step"] != NO_STEP]
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for place in np.unique(rows["process"]).tolist():
        target = recorded.processes[place].target
        step = int(rows["step"][rows["process"] == place].max())
        key = target.role, target.rank
        last[key] = max((step, place), last.get(key, (0, place)))
    for (role, _), (step, place) in last.items():
        if timeline.leads_fleet and place != timeline.leader:
            continue  # members need not take part in every step
        peers = [one for key, one in last.items() if timeline.leads_fleet or key[0] == role]
        end, _ = max(peers)
        if step + 1 < end:
            yield place, (step, end)
