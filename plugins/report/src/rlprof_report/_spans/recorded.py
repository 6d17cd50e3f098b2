"""All spans of a run, on one clock, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rlprof_report._spans.lines import read_fleet_lines, read_spans
from rlprof_report._spans.rows import (
    NO_STEP,
    OTHER,
    PART,
    PHASE,
    SCOPE,
    STEP,
    Rows,
    Table,
    Words,
)
from rlprof_run import unbroken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof import Run
    from rlprof_run import Process


@attrs.frozen(eq=False)
class Recorded:
    """The spans of a run by kind; times are epoch ns, `process` is a place in `processes`."""

    processes: tuple[Process, ...]
    words: Words
    steps: np.ndarray
    phases: np.ndarray
    """`nested`: it lies within another of its process. `of_fleet`: calls, as its driver wrote them.
    `by_driver`: the driver entered it on a member. `broken_off`: an exception left it."""
    parts: np.ndarray
    """Trajectories and their parts; requests."""
    others: np.ndarray
    """Spans outside of trajectories: of the garbage collector, and those that programs name."""
    problems: tuple[str, ...]


def read_recorded(run: Run) -> Recorded:
    """Read the span files of *run*; skip damage, and report it in `problems`."""
    words, problems = Words(), list[str]()
    processes = run.processes
    scopes: list[np.ndarray] = []
    parts: list[np.ndarray] = []
    others: list[np.ndarray] = []
    for index, process in enumerate(processes):
        rows = Rows(index, words)
        for lines in read_spans(run.path / "spans" / f"{process.name}.jsonl", problems):
            rows.take(lines)
        own = rows.scopes.joined()
        own["nested"] = _nested(own)
        scopes.append(own)
        parts.append(rows.parts.joined())
        others.append(rows.others.joined())
        for table in (own, parts[-1], others[-1]):
            _place(table, process)
    scopes.append(_of_fleets(run, words, problems))
    every = np.concatenate(scopes)
    phases = every[every["kind"] == PHASE]
    return Recorded(
        processes=processes,
        words=words,
        steps=every[every["kind"] == STEP],
        phases=_without_doubles(phases),
        parts=np.concatenate([np.empty(0, dtype=PART), *parts]),
        others=np.concatenate([np.empty(0, dtype=OTHER), *others]),
        problems=tuple(problems),
    )


def _place(table: np.ndarray, process: Process) -> None:
    """Put the times of *table* on the wall clock as `clock_at` has it; lengths stay as they are."""
    if not len(table):
        return
    pairs, _ = unbroken(process.clocks)
    monotonic = np.array([pair.monotonic_ns for pair in pairs], dtype=np.int64)
    ahead = np.array([pair.realtime_ns - pair.monotonic_ns for pair in pairs], dtype=np.int64)
    first = ahead[0]  # apart, for the rest is small enough for a double
    drift = np.interp(
        (table["start"] - monotonic[0]).astype(float),
        (monotonic - monotonic[0]).astype(float),
        (ahead - first).astype(float),
    )
    shift = first + np.rint(drift).astype(np.int64)
    table["start"] += shift
    table["end"] += shift


def _nested(scopes: np.ndarray) -> np.ndarray:
    """Return which phases of one process lie within another of its phases."""
    is_phase = scopes["kind"] == PHASE
    nested = np.zeros(len(scopes), dtype=bool)
    if not is_phase.any():
        return nested
    phases, known = scopes[is_phase], np.isin(scopes["parent"], scopes["id"][is_phase])
    nested |= is_phase & known & (scopes["parent"] >= 0)
    # The parent may be a plain span, of which no table is kept: then the thread tells.
    unknown = is_phase & (scopes["parent"] >= 0) & ~np.isin(scopes["parent"], scopes["id"])
    for place in np.flatnonzero(unknown):
        one = scopes[place]
        around = (
            (phases["thread"] == one["thread"])
            & (phases["start"] <= one["start"])
            & (phases["end"] >= one["end"])
            & (phases["id"] != one["id"])
        )
        nested[place] = bool(around.any())
    return nested


def _of_fleets(run: Run, words: Words, problems: list[str]) -> np.ndarray:
    """Read the calls of members that drivers of fleets got from their framework."""
    places = {process.name: number for number, process in enumerate(run.processes)}
    table = Table(SCOPE)
    for file in sorted(run.path.glob("spans/+*.jsonl")):
        for lines in read_fleet_lines(file, problems):
            table.add([
                row for line in lines if (row := _fleet_row(line, places, run.processes, words))
            ])  # fmt: skip
    return table.joined()


def _fleet_row(
    line: Any, places: dict[str, int], processes: Sequence[Process], words: Words
) -> tuple[Any, ...] | None:
    place = places.get(line.of)
    if place is None:
        return None
    start, end = (wall - processes[place].offset_ns for wall in (line.w0, max(line.w0, line.w1)))
    step = NO_STEP if line.step is None else line.step
    name = words.number(line.name)
    return (
        place, PHASE, name, start, end, step, line.occurrence, line.id, -1, 0, 0, -1,
        True, False, False, False,
    )  # fmt: skip


def _without_doubles(phases: np.ndarray) -> np.ndarray:
    """Keep the spans that say how long each member worked in a phase.

    Its calls do, unless its code wrote the phase. A phase that the driver entered on it ends with
    the driver's, so it counts only where no calls are known.
    """
    calls, by_driver = phases["of_fleet"], phases["by_driver"]
    if not calls.any():
        return phases
    keys = ["process", "step", "name", "occurrence"]
    own = set(phases[~calls & ~by_driver][keys].tolist())
    known = set(phases[calls][["step", "name"]].tolist())
    kept = np.ones(len(phases), dtype=bool)
    kept[calls] = [key not in own for key in phases[calls][keys].tolist()]
    kept[by_driver] = [key not in known for key in phases[by_driver][["step", "name"]].tolist()]
    chosen: np.ndarray = phases[kept]
    return chosen
