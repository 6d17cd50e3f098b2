"""What a report cannot know, and why: ranks without spans, files lost or cut, ranks that meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof.rundir import SALVAGED
from rlprof_report._figures.trajectories import ROLLOUT
from rlprof_report._findings.words import command_of
from rlprof_report._plain import listed, ranges_of
from rlprof_report._spans import NO_STEP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof import Run
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._findings.facts import Silent
    from rlprof_report._spans import Recorded
    from rlprof_report.values import Analysis

_MOST_RANKS = 100_000
"""A manifest may say anything."""
_LARGE = 0.2
"""Phases of a smaller share are not worth a note."""


def silent_of(run: Run, recorded: Recorded) -> Silent:
    """List the ranks without spans, of roles of which other ranks write phases."""
    targets = [one.target for one in run.processes]
    wrote = {(targets[place].role, targets[place].rank) for place in _writers(recorded)}
    phased = {targets[place].role for place in np.unique(recorded.phases["process"]).tolist()}
    worlds: dict[str, int] = {}
    for target in (*targets, *(one.target for one in run.attached)):
        if target.replica is None and target.role in phased:
            worlds[target.role] = max(worlds.get(target.role, 0), target.world_size)
    found = {
        role: [rank for rank in range(min(world, _MOST_RANKS)) if (role, rank) not in wrote]
        for role, world in worlds.items()
    }
    return {role: ranks for role, ranks in found.items() if ranks}


def named(silent: Mapping[str, list[int]]) -> str:
    """Name ranks: `actor 1-3, critic 0`; empty if there are none."""
    return listed([f"{role} {one}" for role, ranks in silent.items() for one in ranges_of(ranks)])


def losses_of(run: Run, recorded: Recorded, timeline: Timeline | None) -> Iterator[str]:
    """Say which files are missing or end early, each in a sentence."""
    known = {process.name for process in run.processes}
    there = {file.stem for file in run.path.glob("spans/*.jsonl")}
    if not run.selection.roles:
        alone = sorted(name for name in there - known if not name.startswith(SALVAGED))
        if alone:
            files = listed([f"{name}.jsonl" for name in alone])
            yield f"Missing or damaged in manifest/: {files}. Their spans are left out."
    wrote = {run.processes[place].name for place in _writers(recorded)}
    gone = [] if run.is_running else sorted(known - there - wrote)
    if gone:
        files = listed([f"{name}.jsonl" for name in gone])
        yield f"Missing in spans/: {files}. No span was written, or files are lost."
    if run.missing:
        yield f"{listed([str(one) for one in run.missing])}: expected, and no manifest is there."
    for left in run.left:
        yield f"{left.folder} on {left.host} is not in the run folder: {left.reason}."
    if timeline is not None and not run.is_running:
        yield from _cut(recorded, timeline)


def _cut(recorded: Recorded, timeline: Timeline) -> Iterator[str]:
    """Name span files that end two steps or more before those of others."""
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
            name = recorded.processes[place].name
            yield f"spans/{name}.jsonl is cut: it ends at step {step}, others at step {end}."


def _writers(recorded: Recorded) -> list[int]:
    tables = (recorded.steps, recorded.phases, recorded.parts, recorded.others)
    places: list[int] = np.unique(np.concatenate([one["process"] for one in tables])).tolist()
    return places


def unknown_of(analysis: Analysis, run: Run) -> Iterator[str]:
    """Say which large phases hide a late rank, because ranks meet in them; and what never ended."""
    clean = [one for one in analysis.steps if one.state == "clean"]
    for phase in analysis.phases:
        found = [r for one in clean for r in one.ranks if r.phase == phase.name]
        if phase.share < _LARGE or ROLLOUT.search(phase.name):
            continue
        if found and sum(one.meets for one in found) * 2 >= len(found):
            command = command_of(run, found[0].role, None, phase.name)
            tell = f" Record it once: {command}" if command else ""
            yield (
                f"Ranks of {found[0].role} seem to meet inside {phase.name}: they end together, "
                f"so their times do not say who is late.{tell}"
            )
    last = analysis.steps[-1]
    if last.state == "unfinished":
        ended = {"running": "is going on", "died": "died in it", "ended": "ended in it"}
        named = last.phases[-1].name if last.phases else "its beginning"
        yield (
            f"Step {last.step} is unfinished: the run {ended[analysis.state]}. It is known up to "
            f"the end of {named}; a phase that never ended is in no file."
        )
