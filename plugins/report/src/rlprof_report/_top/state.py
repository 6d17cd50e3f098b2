"""A process and a step of a live run, as far as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.rundir import Here


@attrs.define
class Member:
    """One process."""

    name: str
    role: str
    rank: int
    world_size: int
    here: Here
    offset_ns: int = 0
    """Its wall clock less its monotonic one."""
    has_ended: bool = False
    windows: dict[tuple[str, str, str], int] = attrs.field(factory=dict)
    """Its recordings: (window, tool, target) and since when, epoch ns."""
    counters: dict[str, tuple[int, Mapping[str, float]]] = attrs.field(factory=dict)
    """The last values of each target, and when they were read."""

    def __str__(self) -> str:
        return f"{self.role} {self.rank}/{self.world_size}"


@attrs.define
class Part:
    """One phase of the process that leads."""

    name: str
    seconds: float
    parent: int | None


Ranks = dict[tuple[str, str], dict[str, tuple[float, int]]]
"""(role, phase) → seconds by process, and when it last ended, epoch ns."""


@attrs.define
class LiveStep:
    """One step, as far as it is written."""

    seconds: float | None = None
    """None: it has not ended."""
    parts: list[Part] = attrs.field(factory=list)
    """In the order they ended."""
    end_ns: int = 0
    """When its last phase ended, or it did: epoch ns."""
    since_ns: int = 0
    """When the trainer's numbers were last set back before it, epoch ns; 0: they were not."""
    ranks: Ranks = attrs.field(factory=dict)
    later: Ranks = attrs.field(factory=dict)
    """What came after its end: late, or of the next step of this number."""

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of the outermost phases by name."""
        found: dict[str, float] = {}
        for part in self.parts:
            found[part.name] = found.get(part.name, 0.0) + part.seconds
        return found
