"""All spans of a run, on one clock, as tables."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._spans.lines import FleetLine, Line, read_spans
from rlprof_report._spans.rows import (
    NO_STEP,
    NOTHING,
    OTHER,
    PART,
    PHASE,
    SCOPE,
    STEP,
    Words,
    rows_of,
)
from rlprof_run import unbroken

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    scopes, parts, others = ([np.empty(0, dtype)] for dtype in (SCOPE, PART, OTHER))
    for index, process in enumerate(run.processes):
        lines = read_spans(run.path / "spans" / f"{process.name}.jsonl", Line, problems)
        batches = [rows_of(batch, index, words) for batch in chain([[]], lines)]
        own = [np.concatenate(tables) for tables in zip(*batches, strict=True)]
        own[0]["nested"] = _nested(own[0])
        for table, whole in zip(own, (scopes, parts, others), strict=True):
            _place(table, process)
            whole.append(table)
    every = np.concatenate([*scopes, *_of_fleets(run, words, problems)])
    return Recorded(
        processes=run.processes,
        words=words,
        steps=every[every["kind"] == STEP],
        phases=_without_doubles(every[every["kind"] == PHASE]),
        parts=np.concatenate(parts),
        others=np.concatenate(others),
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


def _of_fleets(run: Run, words: Words, problems: list[str]) -> Iterator[np.ndarray]:
    """Read the calls of members that drivers of fleets got from their framework."""
    places = {process.name: number for number, process in enumerate(run.processes)}
    for file in sorted(run.path.glob("spans/+*.jsonl")):
        for lines in read_spans(file, FleetLine, problems):
            rows = [
                (
                    at, PHASE, words.number(one.name), one.w0 - run.processes[at].offset_ns,
                    max(one.w0, one.w1) - run.processes[at].offset_ns,
                    NO_STEP if one.step is None else one.step, one.occurrence, one.id, -1, 0, 0,
                    NOTHING, True, False, False, False,
                )
                for one in lines
                if (at := places.get(one.of)) is not None
            ]  # fmt: skip
            yield np.array(rows, SCOPE)


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
