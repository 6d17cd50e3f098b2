"""The rollout of one step: its tail, its replicas, and why their slots were empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    queued: float
    tools: float
    tail: float
    finished: float
    """Empty after its last request."""
    outside: float = 0.0
    """Empty because no trajectory of it was there, between its first and its last request."""
    end90_s: float = 0.0
    """The end of 90 % of its requests, after the rollout began."""

    @property
    def idle(self) -> float:
        """The share of slot time in which nothing ran."""
        return 1.0 - self.running


@attrs.frozen
class Late:
    """How the last 5 % of trajectories differ from the others, as means (figure 5)."""

    trajectories: tuple[str, ...]
    """Their ids, the last one first; at most 20."""
    requests_s: float
    tools_s: float
    other_s: float
    tokens_ratio: float
    replica: str = ""
    """The replica that served at least three in four of them, if there are others."""


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
    stalled: str = ""
    """The id of the trajectory that spent longest in tools."""
    tools_by_name: Mapping[str, float] = attrs.field(factory=dict)
    """Seconds in each tool, all trajectories together, the largest first."""
