"""Phases that only one rank of a role has, such as a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._figures.intervals import Interval, clipped, covered
from rlprof_report._figures.path import BETWEEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._figures.meetings import Meetings
    from rlprof_report._figures.ranks import Group

Waits = dict[tuple[int, int], list[Interval]]
"""By the place of the step and of the process."""


@attrs.frozen(eq=False)
class Alone:
    """One such phase in one step."""

    group: Group
    peers: int
    """How many other ranks its role has."""
    wait_s: float
    """How long the median one of them waits during the phase."""


def alone_of(groups: Sequence[Sequence[Group]], meetings: Meetings) -> list[list[Alone]]:
    """List, step by step, the phases of one rank.

    The others wait where ranks meet: in a phase, or in none; maybe in their next step already.
    """
    waits: Waits = {key: list(own) for key, own in meetings.waits.items()}
    for group in (group for step in groups for group in step if group.wait.meets):
        last = int(group.first.max())
        for process, first in zip(group.processes.tolist(), group.first.tolist(), strict=True):
            if group.phase != BETWEEN:
                waits.setdefault((group.step, process), []).append((first, last))
    return [list(_in_step(own, waits)) for own in groups]


def _in_step(groups: Sequence[Group], waits: Waits) -> Iterator[Alone]:
    ranks = {one.role: one for one in groups if one.phase == BETWEEN}
    for group in groups:
        if len(group.ranks) > 1 or group.phase == BETWEEN or group.role not in ranks:
            continue
        own, during = int(group.processes[0]), (int(group.first[0]), int(group.last[0]))
        peers = [one for one in ranks[group.role].processes.tolist() if one != own]
        steps = range(group.step - 1, group.step + 2)
        near = [[one for step in steps for one in waits.get((step, peer), ())] for peer in peers]
        if peers:
            waited_s = float(np.median([covered(clipped(one, *during)) for one in near])) / 1e9
            yield Alone(group, len(peers), min(waited_s, float(group.seconds[0])))
