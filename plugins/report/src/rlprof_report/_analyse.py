"""Computes all figures of a report from a run folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rlprof_report._figures.alone import alone_of
from rlprof_report._figures.bubbles import bubbles_of, busy_of, holders_of
from rlprof_report._figures.clean import clean_of, cost_note, summaries_of
from rlprof_report._figures.ends import ends_of, whole_of
from rlprof_report._figures.helps import flow_of, helps_of
from rlprof_report._figures.intervals import covered
from rlprof_report._figures.lanes import lanes_of
from rlprof_report._figures.meetings import Meetings
from rlprof_report._figures.others import between_of, others_of, outlasted_of, paused_in, pauses_of
from rlprof_report._figures.path import Tracks, path_of
from rlprof_report._figures.phases import overlaps_of, pieces_of, times_of, wraps_of
from rlprof_report._figures.ranks import frontier_of, groups_of, ranks_of, tables_of
from rlprof_report._figures.rollout import rollout_of
from rlprof_report._figures.timeline import repeats_of, timeline_of
from rlprof_report._figures.touches import recordings_of, touched_of
from rlprof_report._figures.trajectories import by_step, in_flight, tokens_of, trajectories_of
from rlprof_report._findings.conclude import conclude
from rlprof_report._findings.facts import Facts
from rlprof_report._findings.lost import lost_of, notes_of, silent_of
from rlprof_report._findings.stuck import stuck_of
from rlprof_report._findings.verdict import with_lost
from rlprof_report._plain import argument
from rlprof_report._spans.recorded import read_recorded
from rlprof_report.device._device import device_of, json_bytes
from rlprof_report.device._findings import device_findings
from rlprof_report.values import Analysis
from rlprof_report.values.step import Stage, Step
from rlprof_traces.clocks import in_words

if TYPE_CHECKING:
    from rlprof import Run
    from rlprof_report._figures.bubbles import Busy
    from rlprof_report._figures.others import Others
    from rlprof_report._figures.phases import Piece
    from rlprof_report._figures.ranks import Group
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._figures.touches import Touched
    from rlprof_report._spans.recorded import Recorded

_ROLLOUTS, _SLOWEST = 1000, 100
"""A longer run has rollout figures for this many steps only, among them the slowest."""


def analyse(run: Run, *, step: int | None = None, most_json_bytes: int | None = None) -> Analysis:
    """Do what `rlprof_report.analyse` says."""
    recorded = read_recorded(run)
    selection = run.selection
    timeline = timeline_of(recorded, selection.has_step if selection.steps else None)
    if timeline is None or not len(timeline):
        analysis = _with_devices(_nothing(run, recorded), run, most_json_bytes)
        found = () if analysis.device is None else device_findings(analysis.device)
        return attrs.evolve(analysis, findings=found)
    epoch = int(timeline.starts[0])
    recordings = list(recordings_of(run, epoch))
    touched = touched_of(recordings, recorded, timeline)
    meetings = Meetings(recorded, timeline)
    groups = groups_of(recorded, timeline, meetings)
    frontiers = [tuple(frontier_of(own)) for own in groups]
    alone = alone_of(groups, meetings)
    groups = [[group for group in own if len(group.ranks) > 1] for own in groups]
    others = others_of(recorded, timeline)
    counted = _counted(timeline, step)
    pieces = pieces_of(recorded, timeline)
    steps = _steps(
        recorded, timeline, touched, groups, others,
        frontiers=frontiers, pieces=pieces, counted=counted, meetings=meetings,
    )  # fmt: skip
    ends = list(ends_of(run, recorded, timeline))
    whole = whole_of(ends, recorded, timeline)
    clean, steps = clean_of(steps, touched, whole=whole, skipped=timeline.skipped)
    tables, left_out = tables_of(groups, timeline.numbers.tolist())
    lanes, hidden = lanes_of(recorded, timeline, epoch)
    notes = [
        *repeats_of(timeline, step),
        *wraps_of(recorded, timeline, steps),
        *notes_of(run, ends),
        *recorded.problems,
    ]
    if len(counted) < len(steps):
        notes.append(f"Rollouts and causes cover {len(counted)} of the {len(steps)} steps.")
    if left_out:
        notes.append(f"The tables of ranks leave out the first {left_out} steps.")
    if hidden:
        notes.append(f"The Gantt leaves out the {hidden} shortest phases.")
    analysis = Analysis(
        **_known(run),
        epoch_ns=epoch,
        leader=recorded.processes[timeline.leader].name,
        steps=tuple(steps),
        clean=clean,
        phases=summaries_of(steps, clean),
        verdict="",
        ranks=tuple(tables),
        lanes=tuple(lanes),
        touches=tuple(touch for one in recordings for touch in one.touches),
        cost_s=sum(one.cost_s for one in steps),
        cost_note=cost_note(steps, clean),
        notes=tuple(notes),
    )
    outlasted = outlasted_of(recorded, timeline, pieces)
    if any(one.is_of_members for one in ends):
        outlasted = [[] for _ in outlasted]
    paused = paused_in(recorded, timeline)
    between = between_of(recorded, timeline, pieces)
    inputs = zip(steps, groups, others, alone, outlasted, paused, between, strict=True)
    facts = [Facts(*one) for at, one in enumerate(inputs) if at in counted]
    early = run.is_running and len(clean.steps) < 2  # ranks may not have written theirs yet
    silent, lost = {} if early else silent_of(run, recorded), lost_of(run, ends, recorded.problems)
    analysis = _with_devices(analysis, run, most_json_bytes)
    stuck = "" if selection.steps else stuck_of(run, recorded, steps)
    is_stuck = bool(stuck) and step in (None, steps[-1].step)
    analysis = conclude(analysis, run, facts, silent, lost, step=step, is_stuck=is_stuck)
    if is_stuck:
        rest = f" {analysis.verdict}" if step is None else ""
        return attrs.evolve(analysis, verdict=stuck + rest)
    return analysis


def _steps(
    recorded: Recorded,
    timeline: Timeline,
    touched: Touched,
    groups: list[list[Group]],
    others: list[Others],
    *,
    frontiers: list[tuple[Stage, ...]],
    pieces: list[list[Piece]],
    counted: set[int],
    meetings: Meetings,
) -> list[Step]:
    epoch = int(timeline.starts[0])
    parts = by_step(recorded, timeline)
    tokens, tracks = tokens_of(recorded, timeline), Tracks(recorded, timeline, meetings)
    holders = holders_of(recorded)
    busy: list[Busy] = busy_of(recorded, timeline) if holders else [{}] * len(timeline)
    made = []
    for place, running in enumerate(in_flight(recorded, timeline)):
        bounds = int(timeline.starts[place]), int(timeline.ends[place])
        own = pieces[place]
        found = rollout = None
        if place in counted:
            ends = {one.phase: int(one.last.max()) for one in groups[place]}
            found = trajectories_of(parts[place], own, bounds, recorded.words, ends)
        if found is not None:
            rollout = rollout_of(found, recorded.processes, epoch)
        ranks = tuple(map(ranks_of, groups[place]))
        unaccounted_ns = bounds[1] - bounds[0] - covered((p.start, p.end) for p in own)
        step = Step(
            step=int(timeline.numbers[place]),
            start_s=(bounds[0] - epoch) / 1e9,
            seconds=(bounds[1] - bounds[0]) / 1e9,
            state="clean",
            phases=times_of(own, epoch),
            unaccounted_s=unaccounted_ns / 1e9,
            overlaps=overlaps_of(own),
            ranks=ranks,
            frontier=frontiers[place],
            rollout=rollout,
            path=path_of(
                own, bounds, step=place, tracks=tracks, ranks=ranks, found=found, epoch=epoch
            ),
            flow=flow_of(own, bounds, found, rollout, running=running, words=recorded.words),
            bubbles=tuple(bubbles_of(recorded, holders, busy[place], own, bounds)),
            touches=tuple(touched.touches.get(place, ())),
            cost_s=covered(touched.cost_ns.get(place, ())) / 1e9,
            pauses=pauses_of(others[place]),
            tokens=(rollout.tokens if rollout else tokens[place]) or sum(p.tokens for p in own),
            version=max((p.version for p in own), default="", key=lambda one: (len(one), one)),
        )
        helps = helps_of(step, leads_fleet=timeline.leads_fleet)
        made.append(attrs.evolve(step, helps=helps))
    return made


def _with_devices(analysis: Analysis, run: Run, most_json_bytes: int | None) -> Analysis:
    """Add the figures of traces."""
    size = json_bytes(run)
    if most_json_bytes is not None and size > most_json_bytes:
        note = f"{size / 1e6:,.0f} MB of traces were not read; the report reads them: "
        note += f"rlprof export {argument(run.path)} --to report"
        return attrs.evolve(analysis, notes=(*analysis.notes, note))
    return attrs.evolve(analysis, device=device_of(run))


def _counted(timeline: Timeline, step: int | None) -> set[int]:
    """Choose the steps whose rollouts are analysed: all, or the slowest and some of the rest."""
    count, lengths = len(timeline), timeline.ends - timeline.starts
    if count <= _ROLLOUTS:
        return set(range(count))
    spread = np.linspace(0, count - 1, _ROLLOUTS - _SLOWEST).astype(np.int64)
    asked = np.flatnonzero(timeline.numbers == step) if step is not None else spread[:0]
    return set(np.concatenate([spread, np.argsort(lengths)[-_SLOWEST:], asked]).tolist())


def _known(run: Run) -> dict[str, Any]:
    """Return the part of an analysis that every run has."""
    captures = tuple(
        {
            "window": one.window.id,
            "target": str(one.target),
            "tool": one.tool,
            "state": one.state,
            "notes": one.notes,
        }
        for one in run.captures
    )
    return {
        "run": str(run.path), "run_id": run.run_id, "state": run.state, "captures": captures,
        "clocks": in_words(run),
    }  # fmt: skip


def _nothing(run: Run, recorded: Recorded) -> Analysis:
    wrote = "No step has begun yet" if run.is_running else "No process wrote a step"
    verdict = f"{wrote}; mark steps with prof.step(n) or prof.steps(...)."
    if run.captures and not run.is_running:
        verdict = "The run has captures and no steps: the files in spans/ are missing or empty."
    ends = list(ends_of(run, recorded, None))
    lost = lost_of(run, ends, recorded.problems)
    return Analysis(
        **_known(run),
        epoch_ns=run.opened_ns,
        verdict=with_lost("No step is in the rest.", lost) if lost else verdict,
        notes=(*notes_of(run, ends), *recorded.problems),
    )
