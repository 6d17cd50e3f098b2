"""Two runs, or two parts of one run, compared: what `rlprof diff` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_report.values import Finding

ChangeState = Literal[
    "slower", "faster", "no difference seen", "too few steps", "only A", "only B",
    "about 0 in A", "about 0 in B",
]  # fmt: skip

KernelState = Literal["new", "gone", "slower", "faster"]


@attrs.frozen
class Side:
    """One side: the run, and which of its steps are compared."""

    run: str
    """Path of the run folder."""
    chosen: str
    """The steps that the user typed; empty: all."""
    steps: tuple[int, ...]
    """The steps that are compared: clean ones, and warm-up that was asked for."""
    left_out: Mapping[str, tuple[int, ...]]
    """By reason: `recorded`, `touched`, `warm-up`, `unfinished`."""
    tokens: float | None
    """Median tokens of a step; None: not every step noted them."""


@attrs.frozen
class Change:
    """The step, or one of its phases, in B against A."""

    name: str
    """The name of the phase; `step` is the whole step, `between phases` the time in none."""
    state: ChangeState
    a_s: float | None
    """Seconds in a typical step, by the fit of `change`; of few steps the median; None: no step."""
    b_s: float | None
    """The same; at equal tokens B over A is `change`."""
    a_steps: int
    b_steps: int
    basis: Literal["equal tokens", "seconds"] = "seconds"
    change: float | None = None
    """B over A less 1, by `basis`; 0.05: B takes 5 % longer. None: one side has none of it."""
    low: float | None = None
    """The interval that holds the change in 95 of 100 comparisons. None: too few steps."""
    high: float | None = None
    visible: float | None = None
    """The smallest change that 4 of 5 comparisons of such steps would find."""
    p: float | None = None
    """How often like runs differ by as much."""
    rank: str = ""
    """The rank that the change comes from, `trainer 1`: of B if B is slower, else of A. Empty: it
    comes from no single one, or ranks write no spans."""


@attrs.frozen
class Resized:
    """A finding that both have, and that takes a quarter more or less in B."""

    a_s: float
    """What it takes of a step in A."""
    b_s: float
    finding: Finding
    """As B has it."""


@attrs.frozen
class Pair:
    """Something that both have, with its value in each; None: it is not there."""

    name: str
    a: str | None
    b: str | None


@attrs.frozen
class KernelChange:
    """One device kernel in both, per role."""

    role: str
    name: str
    state: KernelState
    a_median_us: float | None
    b_median_us: float | None
    a_count: int
    b_count: int


@attrs.frozen
class Diff:
    """All that `rlprof diff A B` says."""

    a: Side
    b: Side
    step: Change
    phases: tuple[Change, ...]
    """In the order of A's steps; those that only B has come last."""
    sentences: tuple[str, ...]
    """The answer, in the order of its weight."""
    came: tuple[Finding, ...] = ()
    """Findings that B has and A has not."""
    went: tuple[Finding, ...] = ()
    resized: tuple[Resized, ...] = ()
    shares: tuple[Pair, ...] = ()
    """Slots and utilisation of the rollout, as medians over the compared steps."""
    kernels: tuple[KernelChange, ...] = ()
    settings: tuple[Pair, ...] = ()
    """What differs in the config, by dotted key."""
    versions: tuple[Pair, ...] = ()
    """What differs in the processes: versions of packages, hosts, number of ranks."""
    notes: tuple[str, ...] = ()
    """What limits the comparison."""
