"""One step: its phases, ranks, critical path, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_report.values.rollout import Rollout

StepState = Literal["clean", "recorded", "touched", "warm-up", "unfinished"]
"""`recorded`: a window was open in it. `touched`: a start, stop or late export overlaps it.
`warm-up`: the first step of a process. `unfinished`: the run ended or goes on inside it."""


@attrs.frozen
class PhaseTime:
    """How long the outermost phases of one name took in a step (figure 1)."""

    name: str
    seconds: float
    start_s: float
    end_s: float
    """Of the first and of the last occurrence."""
    times: int = 1


@attrs.frozen
class Overlap:
    """Two outermost phases that ran at once, and for how long."""

    left: str
    right: str
    seconds: float


@attrs.frozen
class Ranks:
    """The ranks of one role in one phase of a step (figure 2)."""

    role: str
    phase: str
    ranks: int
    median_s: float
    mean_s: float
    max_s: float
    slowest: int
    """The rank that took longest."""
    process: str
    """The stem of that rank's files."""
    wait_s: float
    """max - median of the others: the most that making the slowest rank like them would save."""
    waste_s: float
    """max - mean: how long the ranks wait on average."""
    meets: bool
    """Whether ranks seem to meet inside (they end together), so that no time says who is late."""


@attrs.frozen
class Stage:
    """One stage of the frontier of a role (figure 3): they add up to its slowest rank's time."""

    role: str
    name: str
    seconds: float
    leader: int
    """The rank that is furthest behind at its end."""


@attrs.frozen
class PathPart:
    """A stretch of the critical path (figure 9); the parts tile the step."""

    what: str
    start_s: float
    end_s: float
    where: str = ""
    """Rank, replica or trajectory that was waited for."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end_s - self.start_s


@attrs.frozen
class Help:
    """An upper bound of what one change would save (figure 10); do not add two of them."""

    what: str
    """A short key: `tail`, `even replicas`, `slowest rank`, `tools`, `sync`, `gaps`, `one step
    off`, `recording`."""
    seconds: float
    assumption: str
    """The assumption, in a sentence."""


@attrs.frozen
class Flow:
    """An asynchronous step (figure 11)."""

    trainer_idle: float
    rollout_idle: float
    overlap: float
    """Time in both rollout and update over the shorter of the two."""
    lag: Mapping[str, float] = attrs.field(factory=dict)
    """Trainer's version less that of its trajectories: p50, p99, max; empty: not noted."""
    advice: str = ""


@attrs.frozen
class Bubble:
    """Device seconds in which a role's devices did nothing, by cause (figure 12)."""

    role: str
    cause: str
    device_s: float


@attrs.frozen
class Touch:
    """A start, stop or late export of rlprof, which took time (figure 13)."""

    what: Literal["start", "stop", "export"]
    target: str
    tool: str
    window: str
    start_s: float
    end_s: float
    process: str


@attrs.frozen
class Step:
    """One step of the process that leads."""

    step: int
    start_s: float
    seconds: float
    state: StepState
    phases: tuple[PhaseTime, ...]
    unaccounted_s: float
    """The step less the union of its outermost phases."""
    overlaps: tuple[Overlap, ...] = ()
    ranks: tuple[Ranks, ...] = ()
    frontier: tuple[Stage, ...] = ()
    rollout: Rollout | None = None
    path: tuple[PathPart, ...] = ()
    helps: tuple[Help, ...] = ()
    flow: Flow | None = None
    bubbles: tuple[Bubble, ...] = ()
    touches: tuple[Touch, ...] = ()
    cost_s: float = 0.0
    """Seconds of the critical path that rlprof's starts, stops and late exports took."""
    pauses: Mapping[str, float] = attrs.field(factory=dict)
    """Seconds of interruptions of the program, by name: `gc`."""
    tokens: int = 0
    """Tokens that trajectories and requests of the step noted."""
    version: str = ""
