"""The steps of the leading process, and the step of each span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rlprof.types import DRIVER
from rlprof_report._spans.rows import NO_STEP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_report._spans.recorded import Recorded


@attrs.frozen(eq=False)
class Timeline:
    """The steps in the order they began, by the clock of the run in ns."""

    leader: int
    """Its place among the processes."""
    leads_fleet: bool
    numbers: np.ndarray
    """The trainer's numbers; one may come twice in a run that was set back."""
    starts: np.ndarray
    ends: np.ndarray
    unfinished: bool
    """Whether the last of them never ended: its end is that of its last phase."""
    skipped: int = 0
    """Steps of the run before the first of these."""

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Return the place of the step of each of *rows*; -1: none.

        The number of the step counts if a row has one. Else it is the step it began in.
        """
        places = np.full(len(rows), -1, dtype=np.int64)
        if not len(self) or not len(rows):
            return places
        at = np.searchsorted(self.starts, rows["start"], side="right") - 1
        inside = (at >= 0) & (rows["start"] < self.ends[at])
        places[inside] = at[inside]
        unique, first, times = np.unique(self.numbers, return_index=True, return_counts=True)
        found = np.searchsorted(unique, rows["step"])
        found[found == len(unique)] = 0
        named = (unique[found] == rows["step"]) & (times[found] == 1)
        places[named] = first[found[named]]
        return places


def timeline_of(recorded: Recorded, selected: Any = None) -> Timeline | None:
    """Find the leading process and its steps; None: no process wrote a step.

    *selected* says whether the step of a number is wanted.
    """
    steps = recorded.steps[recorded.steps["step"] != NO_STEP]
    phases = recorded.phases[~recorded.phases["of_fleet"] & (recorded.phases["step"] != NO_STEP)]
    leader = _leader(recorded, steps if len(steps) else phases)
    if leader is None:
        return None
    own = steps[steps["process"] == leader]
    own = own[np.argsort(own["start"], kind="stable")]
    numbers, starts, ends = own["step"], own["start"], own["end"]
    last = _last(phases[phases["process"] == leader], numbers, ends)
    if last is not None:
        number, start, end = last
        numbers, starts, ends = (
            np.append(numbers, number), np.append(starts, start), np.append(ends, end)
        )  # fmt: skip
    unfinished, skipped = last is not None, 0
    if selected is not None:
        chosen = np.array([bool(selected(int(number))) for number in numbers], dtype=bool)
        unfinished = unfinished and bool(chosen[-1])
        skipped = int(np.argmax(chosen))
        numbers, starts, ends = numbers[chosen], starts[chosen], ends[chosen]
    is_driver = recorded.processes[leader].target.role == DRIVER
    return Timeline(leader, is_driver, numbers, starts, ends, unfinished, skipped)


def _leader(recorded: Recorded, rows: np.ndarray) -> int | None:
    """Choose the driver, else the lowest rank of the role with the most steps."""
    places, counts = np.unique(rows["process"], return_counts=True)
    by_role: dict[str, int] = {}
    for place, count in zip(places.tolist(), counts.tolist(), strict=True):
        role = recorded.processes[place].target.role
        by_role[role] = max(count, by_role.get(role, 0))

    def rank(found: tuple[int, int]) -> tuple[Any, ...]:
        target = recorded.processes[found[0]].target
        return target.role != DRIVER, -by_role[target.role], target.role, target.rank, -found[1]

    found = min(zip(places.tolist(), counts.tolist(), strict=True), key=rank, default=None)
    return None if found is None else int(found[0])


def _last(phases: np.ndarray, numbers: np.ndarray, ends: np.ndarray) -> tuple[int, int, int] | None:
    """Find a step that has phases and never ended: its number, start and end so far."""
    after = phases[~np.isin(phases["step"], numbers)]
    if len(ends):
        after = after[after["start"] >= ends[-1]]
    if not len(after):
        return None
    number = after["step"][np.argmax(after["start"])]
    own = after[after["step"] == number]
    start = max(int(own["start"].min()), int(ends[-1]) if len(ends) else 0)
    return int(number), start, int(own["end"].max())


def repeats_of(timeline: Timeline, step: int | None) -> Iterator[str]:
    """Note that step numbers repeat, as in a loop over epochs that counts from 0 in each."""
    if step is None:
        again = len(timeline) - len(np.unique(timeline.numbers))
        if again:
            yield f"Step numbers repeat ({again} of {len(timeline)}): count on over epochs."
    elif (times := int((timeline.numbers == step).sum())) > 1:
        yield f"Step {step} comes {times} times in this run; this is the last of them."
