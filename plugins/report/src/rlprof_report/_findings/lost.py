"""The gaps of a report, and why: ranks without spans, lost or cut files, ranks that meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof.rundir import SALVAGED
from rlprof_report._plain import listed
from rlprof_run import ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlprof import Run
    from rlprof_report._figures.ends import End
    from rlprof_report._findings.facts import Silent
    from rlprof_report._spans.recorded import Recorded
    from rlprof_report.values import Analysis

_MOST_RANKS = 100_000
"""Most ranks that are checked: a manifest may claim any number."""


def silent_of(run: Run, recorded: Recorded) -> Silent:
    """List the ranks without spans, of roles of which other ranks write phases."""
    targets = [one.target for one in run.processes]
    tables = (recorded.steps, recorded.phases, recorded.parts, recorded.others)
    writers = np.unique(np.concatenate([one["process"] for one in tables])).tolist()
    wrote = {(targets[place].role, targets[place].rank) for place in writers}
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


def lost_of(run: Run, ends: Sequence[End], problems: Sequence[str]) -> list[str]:
    """Name the files, or parts of them, that the answer lacks, each in a sentence."""
    holes = [f"{one}." for one in problems]
    holes += [f"{one}." for one in run.problems if one.endswith("spans could not be written")]
    return [*_unexplained(run), *(one.sentence for one in ends if one.is_loss), *holes]


def notes_of(run: Run, ends: Sequence[End]) -> Iterator[str]:
    """Name what is not in the run folder, with the problems that the reader of the run found."""
    yield from _unexplained(run)
    yield from (one.sentence for one in ends if one.sentence)
    if run.missing:
        yield f"{listed([str(one) for one in run.missing])}: expected, and no manifest is there."
    for left in run.left:
        yield f"{left.folder} on {left.host} is not in the run folder: {left.reason}."
    known = {one.problem for one in ends}
    yield from (one for one in run.problems if one not in known)


def _unexplained(run: Run) -> Iterator[str]:
    """Name the span files whose process no manifest names."""
    known, there = set(run.by_name), {file.stem for file in run.path.glob("spans/*.jsonl")}
    alone = sorted(name for name in there - known if not name.startswith(SALVAGED))
    if alone and not run.selection.roles:
        files = listed([f"{name}.jsonl" for name in alone])
        yield f"Missing or damaged in manifest/: {files}. Their spans are left out."


def unknown_of(analysis: Analysis, *, is_whole: bool) -> Iterator[str]:
    """Name the part of the last step that is unknown, if it never ended."""
    last = analysis.steps[-1]
    if last.state == "unfinished" and is_whole:
        ended = {
            "running": "is still in it",
            "died": "died in it, or up to a second later",
            "ended": "ended in it",
        }
        named = last.phases[-1].name if last.phases else "its beginning"
        yield (
            f"Step {last.step} is unfinished: the run {ended[analysis.state]}. It is known up to "
            f"the end of {named}; a phase is written when it ends."
        )
