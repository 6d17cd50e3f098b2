"""Narrows a run to a part of it: which captures, which processes, and when spans are of it."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import attrs

from rlprof.errors import RunError
from rlprof_run._selection import WINDOWS
from rlprof_run._unmatched import explain_empty

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlprof.types import Target
    from rlprof_run._run import CaptureResult, Run
    from rlprof_run._selection import Selection
    from rlprof_run._spans import Span

Times = tuple[tuple[int, int], ...]
"""Stretches of wall-clock time, sorted; none touches the next."""


def select(run: Run, selection: Selection) -> Run:
    """Return the part of *run* that *selection* names; raise RunError if that is empty."""
    if selection.is_all:
        return run
    if not run.selection.is_all:
        raise RunError(f"{run.path}: is a selection already; read the run again, select once")
    after, until = selection.from_ns, selection.until_ns
    if after is not None and until is not None and until <= after:
        raise RunError(f"{run.path}: the time selected ends before it begins")
    roles = roles_of(run, selection)
    when = list(_times_of(run))
    due, own_times = [], []
    for capture, time in zip(run.captures, when, strict=True):
        if selection.has_window(capture.window) and (time is None or selection.has_time(*time)):
            due.append(capture)
            own_times += [] if time is None else [time]
    mine = [one for one in due if roles is None or identity(one.target) in roles]
    kept = [part for one in mine for part in _wanted(one, selection)]
    holders = {capture.process for capture in kept}
    part = attrs.evolve(
        run,
        processes=tuple(
            one
            for one in run.processes
            if roles is None or identity(one.target) in roles or one.name in holders
        ),
        captures=tuple(kept),
        selection=selection,
        times=_span_times(run, selection, own_times),
    )
    if not kept and next(part.spans(), None) is None:
        raise RunError(explain_empty(run, selection, [time for time in when if time]))
    return part


Who = tuple[str, int, int | None]
"""A target, by the fields that its driver and its own process agree on."""


def identity(target: Target) -> Who:
    """Tell *target* from others."""
    return target.role, target.rank, target.replica


def roles_of(run: Run, selection: Selection) -> set[Who] | None:
    """Name the targets of the selected roles; None: all of them.

    An actor of a fleet that stands in several roles writes as the first of them, and is of all.
    """
    if not selection.roles:
        return None
    here = [*(one.target for one in run.processes), *(one.target for one in run.captures)]
    found = {identity(target) for target in here if target.role in selection.roles}
    return found | {identity(one.target) for one in run.attached if one.role in selection.roles}


def _wanted(capture: CaptureResult, selection: Selection) -> Iterator[CaptureResult]:
    """Give *capture* if its tool is wanted; without its files, if just windows are."""
    if not selection.only or capture.tool in selection.only:
        yield capture
    elif WINDOWS in selection.only:
        yield attrs.evolve(capture, artifacts=())


def _times_of(run: Run) -> Iterator[tuple[int, int] | None]:
    """Return the time of each capture, in epoch ns; None: its process wrote no clock."""
    for capture in run.captures:
        process = run.by_name.get(capture.process)
        if process is None:
            yield None
            continue
        start, end = capture.opened_ns, capture.closed_ns
        if end is None:  # one that was never closed ends with the last sign of life
            is_cut = capture.state in ("recording", "lost")
            end = process.clocks[-1].realtime_ns if is_cut else start
        yield start, max(start, end)


def _span_times(
    run: Run, selection: Selection, own_times: Iterable[tuple[int, int]]
) -> Times | None:
    """Return when a span that names no selected step may have been; None: any time.

    With windows named that is while one of them was open, else while a selected step went on.
    """
    if not selection.has_spans() or not (selection.windows or selection.steps):
        return None
    found = [(start, max(end, start + 1)) for start, end in own_times]
    if not selection.windows:
        found += [
            (span.start_ns, max(span.end_ns, span.start_ns + 1))
            for span in run.spans()
            if span.kind == "step" and span.step is not None and selection.has_step(span.step)
        ]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return tuple(merged)


def covers(span: Span, selection: Selection, times: Times | None) -> bool:
    """Whether *span* belongs to the part, whatever its role."""
    has_step = bool(selection.steps) and span.step is not None
    if span.step is not None and not selection.has_step(span.step):
        return False
    is_placed = selection.windows or not has_step
    if times is not None and is_placed and not _meets(span.start_ns, span.end_ns, times):
        return False
    return selection.has_time(span.start_ns, span.end_ns)


def is_in(time_ns: int, selection: Selection, times: Times | None) -> bool:
    """Whether a moment belongs to the part."""
    is_meant = times is None or _meets(time_ns, time_ns, times)
    return is_meant and selection.has_time(time_ns, time_ns)


def _meets(start_ns: int, end_ns: int, times: Times) -> bool:
    """Whether this stretch and one of *times* have a moment in common."""
    end = max(end_ns, start_ns + 1)
    last = bisect_left(times, end, key=lambda time: time[0]) - 1
    return last >= 0 and times[last][1] > start_ns
