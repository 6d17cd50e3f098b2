"""One step: its phases, ranks, rollout, critical path, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping


@attrs.frozen
class Replica:
    """One rollout replica in one rollout (figures 6 and 14); its seven shares add up to 1."""

    name: str
    slots: int
    """The most requests that ran at once, or the engine's limit where it is known."""
    requests: int
    tokens: int
    end_s: float
    """The end of its last request, after the rollout began."""
    running: float
    start: float
    """Empty before its first request; this and those below are shares of slots x time."""
    queued: float | None
    """None: no request noted that it waited, so those that wait count as running."""
    tools: float
    tail: float
    finished: float
    """Empty after its last request."""
    outside: float = 0.0
    """Empty because no trajectory of it was there, between its first and its last request."""
    end90_s: float = 0.0
    """The end of 90 % of its requests, after the rollout began."""


@attrs.frozen
class Late:
    """How the last 5 % of trajectories differ from the others, as means (figure 5)."""

    trajectories: tuple[str, ...]
    """Their ids, the last one first; at most 20."""
    requests_s: float
    tools_s: float
    other_s: float
    tokens_ratio: float


@attrs.frozen
class Blocked:
    """Calls during which the other trajectories of their thread stand still."""

    seconds: float
    calls: int
    process: int
    name: str
    """`tool_call` or `reward`."""
    tool: str
    is_one: bool = False
    """Whether it is a single call of many, so other code of its thread may be the cause."""


@attrs.frozen
class Rollout:
    """The rollout of one step (figures 5 to 8, 14, 15)."""

    phase: str
    start_s: float
    end_s: float
    trajectories: int
    requests: int
    tokens: int
    tokens_per_s: float
    """0 where no tokens were noted."""
    trajectory_s: Mapping[str, float]
    """How long trajectories took: p50, p90, p99, max."""
    tail_s: Mapping[str, float]
    """By share q: the time from the end of that share of trajectories to the last end."""
    tail_bound_s: float
    """How much earlier the rollout ends at most without its longest trajectories (figure 5)."""
    late: Late | None
    replicas: tuple[Replica, ...]
    even_gain_s: float
    """End of the last replica less the mean end (figure 7)."""
    utilisation: float | None
    """Running requests over slots, all replicas together; verl's rollout_resource_utilization."""
    tools_longest_s: float
    """Seconds in tools of the trajectory that ended last (figure 8)."""
    tools_median_s: float
    no_request_s: float
    """Time in which trajectories ran and no request did."""
    longest: str
    """The id of the trajectory that ended last."""
    late_share: float = 0.95
    """The share after which the late ones end: 0.95, or 0.9 if a tenth is late together."""
    ended: tuple[float, ...] = ()
    """When trajectories ended, after the rollout began, sorted; at most 200 quantiles of them."""
    tokens_rate: tuple[float, ...] = ()
    """Tokens per second in equal bins of the rollout, at most 200."""
    in_flight: tuple[float, ...] = ()
    """Mean requests in flight in the same bins."""
    queue_s: Mapping[str, float] = attrs.field(factory=dict)
    """p50, p99 of the time in queue, where requests noted it (figure 15)."""
    first_token_s: Mapping[str, float] = attrs.field(factory=dict)
    preemptions: int | None = None
    tools_gain_s: float = 0.0
    """How much earlier the last trajectory would end if none spent more time in tools than the
    median one: a bound (figure 8)."""
    stalls: int = 0
    """How many trajectories spend half of that gain or more in tools beyond the median."""
    stalls_in: str = ""
    """The tool in which they spend most of that."""
    tool_gain_s: float = 0.0
    """How much earlier the last one would end without the first tool of `tools_by_name`."""
    rewards_gain_s: float = 0.0
    """How much earlier the last trajectory would end without rewards (figure 8)."""
    tools_by_name: Mapping[str, float] = attrs.field(factory=dict)
    """Seconds in each tool, all trajectories together, the largest first."""
    blocked: Blocked | None = None


StepState = Literal["clean", "recorded", "touched", "warm-up", "unfinished"]
"""`recorded`: a window was open in it. `touched`: what rlprof itself does overlaps it.
`warm-up`: the first step of a process. `unfinished`: spans of it are not on disk."""


@attrs.frozen
class PhaseTime:
    """How long the outermost phases of one name took in a step (figure 1)."""

    name: str
    seconds: float
    start_s: float
    end_s: float
    """Of the first and of the last occurrence."""
    times: int = 1
    last: str = ""
    """The role that ended most of it, where it is of several processes."""


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
    max_s: float
    slowest: int
    """The rank that took longest."""
    who: str
    """Those that the others wait for: `actor 5`, `ranks 2-3 of actor`."""
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
    """A short key: `tail`, `even replicas`, `slowest rank`, `tools`, `sync`, `gaps`,
    `one-step off-policy`, `recording`."""
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
    held_by: str = ""
    """What trajectories do while the trainer waits for them; empty: nothing stands out."""
    sync_served_s: float = 0.0
    """Seconds of the phases that bring weights, with a request in flight."""


@attrs.frozen
class Bubble:
    """Device seconds in which a role's devices did nothing, by cause (figure 12)."""

    role: str
    cause: str
    device_s: float


@attrs.frozen
class Touch:
    """What rlprof itself did, and for how long (figure 13)."""

    what: Literal["configure", "start", "stop", "export"]
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
    """Seconds of the critical path that rlprof itself took."""
    pauses: Mapping[str, float] = attrs.field(factory=dict)
    """Seconds of interruptions of the program, by name: `gc`."""
    tokens: int = 0
    """Tokens that trajectories and requests of the step noted."""
    version: str = ""

    def took(self, phase: str) -> float:
        """Return the seconds of *phase*; 0: it has none."""
        return next((one.seconds for one in self.phases if one.name == phase), 0.0)
