"""What a report cannot know about a run, and how to find out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._figures.trajectories import ROLLOUT
from rlprof_report._findings.words import command_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof import Run
    from rlprof_report.values import Analysis

_LARGE = 0.2
"""Phases of a smaller share are not worth a note."""


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
