"""The input of a search for causes: one step, and what its figures leave out."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._plain import whose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._figures.alone import Alone
    from rlprof_report._figures.others import Between, Others, Outlasted, Paused
    from rlprof_report._figures.ranks import Group
    from rlprof_report.values.step import Step
    from rlprof_run import Process

Silent = dict[str, list[int]]
"""Role → its ranks that write no spans."""
_DATA = {
    "data", "dataloader", "dataset", "fetch", "prefetch", "load", "loader", "loading", "collate",
}  # fmt: skip
_NO_DATA = {"weight", "weights", "model", "param", "params", "checkpoint", "ckpt", "state", "lora"}
MARGIN = 1.1
"""Removing a cause saves more than it takes, up to a twentieth more in `bench/planted.py`."""
_UNEVEN = 1.2
"""A rank with this many times the tokens of the others is slow for that reason."""
_WORD = re.compile(r"[a-z]+|[A-Z][a-z]*")


def is_data(name: str) -> bool:
    """Whether a phase of this *name* loads data, not weights."""
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(words & _DATA) and not words & _NO_DATA


def uneven_tokens(group: Group) -> Iterator[str]:
    """Compare the tokens of the slowest rank of *group* with those of the others."""
    own = float(group.tokens[group.wait.slowest])
    usual = float(np.median(np.delete(group.tokens, group.wait.slowest)))
    if usual and own >= _UNEVEN * usual:
        yield (
            f"It has {own:,.0f} tokens, the median of the others {usual:,.0f}: balance tokens "
            "over ranks."
        )


def bound_of(seconds: float, whole_s: float, margin: float = MARGIN) -> float:
    """Bound what removing *seconds* of *whole_s* saves: of the rest a fifth at most."""
    return min(margin * seconds, seconds + (whole_s - seconds) / 5)


@attrs.frozen(eq=False)
class Facts:
    """One step."""

    step: Step
    groups: Sequence[Group]
    others: Others
    alone: Sequence[Alone]
    outlasted: Sequence[Outlasted]
    paused: Paused
    between: Between
    """What goes on between the phases of the leader."""


@attrs.frozen
class Measure:
    """The time that a cause took in one step, and the evidence."""

    cause: str
    seconds: float
    who: str = ""
    """Its rank, replica or tool. If that is the same in most steps, the cause persists."""
    sentence: str = ""
    """A whole sentence: what takes how long in this step, and why."""
    evidence: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    role: str = ""
    """What to record next: this role, rank and phase."""
    rank: int | None = None
    phase: str = ""
    bound_s: float = 0.0
    """The most that removing it saves; 0: what it takes, and `MARGIN`."""
    is_by_chance: bool = False
    """Whether nothing in the step shows why: another process may be last in the next step."""


@attrs.frozen
class Context:
    """Facts that are the same for all steps."""

    processes: tuple[Process, ...]
    leader: int
    leads_fleet: bool
    silent: Silent = attrs.field(factory=dict)
    is_guest: bool = False
    """Whether the phases are calls of members, which `rlprof attach` follows, not the driver's."""

    @cached_property
    def replica_hosts(self) -> dict[str, str]:
        """Replica → its host, of those that write a manifest of their own."""
        return {
            str(one.target.replica): one.here.host
            for one in self.processes
            if one.target.replica is not None
        }

    def name(self, process: int) -> str:
        """Return a readable name: `actor 5`, `rollout replica 1`, `driver`, `the actors`."""
        target = self.processes[process].target
        is_driver = process == self.leader and self.leads_fleet
        if is_driver:
            return "the actors" if self.is_guest else target.role
        return whose(target)
