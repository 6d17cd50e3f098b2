"""All values of a report, frozen; page, JSON and terminal print these and nothing else.

Seconds are floats. A moment is given in seconds after the first step of the report began;
`Analysis.epoch_ns` is the time of that.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_report.values.step import Step, Touch


@attrs.frozen
class Clean:
    """Which steps medians and findings use, and which are left out and why."""

    steps: tuple[int, ...]
    left_out: Mapping[str, tuple[int, ...]]
    """By state: `recorded`, `touched`, `warm-up`, `unfinished`."""
    median_s: float | None
    """Seconds of the median step; None: there is no clean step."""
    mean_s: float | None


@attrs.frozen
class PhaseSummary:
    """A phase over the clean steps."""

    name: str
    mean_s: float
    median_s: float
    p95_s: float
    share: float
    """Of the time of all clean steps."""
    steps: int
    """How many have it; the others count as 0 s."""
    wait_s: float
    """Mean wait for the slowest rank; 0 where ranks are not known or meet inside."""
    worst: str = ""
    """Those that are slowest most often: `actor 1`; empty: others in a third of the steps."""
    last: str = ""
    """The role that ended it in most steps, where it is of several processes."""


@attrs.frozen
class RankTable:
    """Seconds of one phase by rank and step, for a heat map."""

    role: str
    phase: str
    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    seconds: tuple[tuple[float | None, ...], ...]
    """A row a rank, a column a step."""


_SECTIONS = {
    "straggler": "ranks", "replica": "rollout", "tool": "rollout", "tail": "rollout",
    "tools": "rollout", "reward": "rollout", "wait": "rollout", "blocked": "rollout",
    "alone": "gantt-of-all", "gc": "gantt-of-all", "data": "gantt-of-all", "hidden": "gantt-of-all",
    "driver": "gantt-of-all", "recording": "recording", "device": "device",
}  # fmt: skip
"""Cause → the section of the page about it; of the others, the critical path."""


@attrs.frozen
class Finding:
    """Something that takes longer than it needs to."""

    cause: Literal[
        "straggler", "alone", "replica", "tool", "tools", "reward", "blocked", "tail", "wait",
        "sync", "gap", "gc", "data", "hidden", "driver", "recording", "device", "slow step",
    ]  # fmt: skip
    title: str
    """One sentence: what takes how long, and why."""
    evidence: tuple[str, ...]
    """Sentences, each with its numbers."""
    seconds: float
    """What it takes of the typical step."""
    bound_s: float
    """The most that removing it would save per step."""
    share: float
    """`seconds` of the median clean step, or of the step where it is about one."""
    steps: tuple[int, ...]
    """The steps that show it."""
    where: tuple[str, ...]
    """Where to look: a rank, trajectory, replica, window, file."""
    command: str = ""
    """What to record next, to be pasted; if the run is over, while the next one goes on."""
    step: int | None = None
    """The typical one of `steps`: `seconds`, title and `where` are of it."""

    @property
    def section(self) -> str:
        """The part of the page that shows more."""
        return _SECTIONS.get(self.cause, "path")


@attrs.frozen
class Lane:
    """One process in the Gantt: bars of (name, start, end), seconds after `epoch_ns`."""

    process: str
    title: str
    """`actor 0/2 · node-a`."""
    bars: tuple[tuple[str, float, float], ...]


@attrs.frozen
class Counter:
    """A counter over time: memory, utilisation, requests running (see docs/manifest.md)."""

    process: str
    name: str
    unit: str
    times_s: tuple[float, ...]
    values: tuple[float, ...]
    """At most 500 points; of more, the mean of equal bins."""


@attrs.frozen
class Analysis:
    """All that a report says about a run."""

    run: str
    """Path of the run folder."""
    run_id: str
    state: str
    """`ended`, `running`, `died` or `empty`."""
    epoch_ns: int
    """Epoch ns of second 0 of every `_s`."""
    verdict: str
    """The answer, in one to three sentences."""
    findings: tuple[Finding, ...] = ()
    """The largest first; empty: nothing is odd, or too few steps, as `verdict` says."""
    steps: tuple[Step, ...] = ()
    clean: Clean = Clean((), {}, None, None)
    phases: tuple[PhaseSummary, ...] = ()
    leader: str = ""
    """The name of the process that ran these steps."""
    whose: str = ""
    """A readable name of that process: `driver`, `trainer 0`."""
    ranks: tuple[RankTable, ...] = ()
    lanes: tuple[Lane, ...] = ()
    """Phases of every process, at most 200,000 bars; `notes` counts the rest."""
    touches: tuple[Touch, ...] = ()
    cost_s: float = 0.0
    """Seconds that recording cost on the critical path of all steps."""
    cost_note: str = ""
    """Median recorded step less median clean step, with its interval, in a sentence."""
    counters: tuple[Counter, ...] = ()
    captures: tuple[Mapping[str, Any], ...] = ()
    """Asked and written, as `rlprof ls` has it: window, target, tool, state, notes."""
    clocks: str = ""
    """How the clocks of hosts were put together, and how exact that is, in a sentence."""
    notes: tuple[str, ...] = ()
    """What could not be read, what is left out, what is unknown."""
    device: Any = None
    """A `rlprof_report.device.Device` where windows have traces; None: there is none."""

    @property
    def no_phase_s(self) -> float:
        """The mean of what clean steps spend in no phase."""
        return fmean([one.unaccounted_s for one in self.steps if one.state == "clean"] or [0.0])
