"""Writes the file: its `rlprof` object, the names of its tracks, spans, and parts with traces.

The time of its `ts` 0 must be known before the first trace is read, because viewers drop earlier
events. It comes from the windows; if a trace has an earlier event, all is done again.
"""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.errors import RlprofError, one_line
from rlprof_timeline._meetings import aligned, checked
from rlprof_timeline._merge import Group, Stretch
from rlprof_timeline._pool import move_all
from rlprof_timeline._progress import print_line
from rlprof_timeline._rows import rows
from rlprof_timeline._tracks import PROCESSES
from rlprof_traces import Packed, encode, named, timed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlprof_timeline._meetings import Align, Check
    from rlprof_timeline._merge import Moved, Part
    from rlprof_timeline._source import Plan, Source

log = logging.getLogger("rlprof.timeline")

FILE = "timeline.json.gz"
_FIRST = 1 << 22
"""The number of the first process of a file that keeps its processes."""
_THREADS, _BELOW = 100_000, 10_000_000
"""The numbers of the threads of traces, below the rows of rlprof: viewers order by number. A thread
with the number of its process would be taken for its main thread, which stands above all."""
_PREFIX = 100_000
"""The prefix of the ids of the first trace; see `Place`."""


def write(plan: Plan, out: Path, align: Align = "auto") -> Path:
    """Write *plan* into *out*, whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{FILE}.", dir=out) as folder:
        parts, zero_ns = _move(plan, before(plan, ()), Path(folder))
        read = [item for part in parts for item in part.items]
        check = checked(plan, read, align)
        if check.moved:
            plan = aligned(plan, read, check.moved)
            parts, zero_ns = _move(plan, before(plan, ()), Path(folder))
        draft = Path(folder) / FILE
        with draft.open("wb") as file:
            with Packed(file, fast=True) as stream:
                _write_own(plan, parts, zero_ns, check, stream.write)
            for part in parts:
                with part.path.open("rb") as moved:
                    shutil.copyfileobj(moved, file, 1 << 20)
                part.path.unlink()  # of a large file there is room for one
            with Packed(file, fast=True) as stream:
                stream.write(b"\n]}\n")
        return draft.replace(out / FILE)


def _move(plan: Plan, zero_ns: int, folder: Path) -> tuple[list[Part], int]:
    """Move all traces; return also the time of `ts` 0, which is before all events."""
    groups = _numbered(plan)
    while True:
        stretch = Stretch(zero_ns, plan.from_ns, plan.until_ns)
        parts = move_all(groups, stretch, folder)
        found = [item.earliest_ns for part in parts for item in part.items]
        earliest = [at for at in found if at is not None]
        if min(earliest, default=zero_ns) >= zero_ns:
            return parts, zero_ns
        zero_ns = before(plan, earliest)


def before(plan: Plan, earliest: Sequence[int]) -> int:
    """Return the last whole microsecond before all events."""
    starts = [*earliest, *(start for source in plan.sources for start in source.starts)]
    return (min(starts, default=plan.opened_ns) // 1000 - 1) * 1000


def _numbered(plan: Plan) -> list[Group]:
    pids, prefix = count(_FIRST, PROCESSES), _PREFIX
    found = []
    for own, source in enumerate(plan.sources, 1):
        room = min(_THREADS, (_BELOW - _THREADS) // max(1, len(source.groups)))
        for group, first in zip(source.groups, count(_THREADS, room), strict=False):
            pid = own if source.title else next(pids)
            one = Group(group.title, first, pid, bool(source.title), prefix, group.traces)
            found.append(one)
            prefix += len(group.traces)
    return found


def _write_own(plan: Plan, parts: Sequence[Part], zero_ns: int, check: Check, put: Any) -> None:
    """Write everything but the traces; their parts follow."""
    left_out = dict(plan.left_out)
    read = [item for part in parts for item in part.items]
    for trace, moved in zip(plan.traces(), read, strict=True):
        if moved.left_out:
            left_out[trace.shown] = moved.left_out
            reason = one_line(f"{trace.shown}: {moved.left_out}", longest=1000)  # may hold anything
            log.warning("%s; left out of the timeline", reason)
        elif moved.problems:
            reason = "; ".join(moved.problems)
            log.warning("%s", one_line(f"{trace.shown}: {reason}", longest=1000))
    for words in check.warnings():
        log.warning("%s", words)
    header = _header(plan, read, left_out, zero_ns) | {"check": check.described()}
    if check.moved:
        header["method"] += ", moved by collectives"
    if header["sources"]:
        for words in (_clocks(header, len(read), check), *check.moves()):
            print_line(words)
    elif left_out:
        raise RlprofError("none of the files is a trace that can be read")
    else:
        log.warning("nothing is selected: the timeline is empty")
    put(b'{"rlprof":' + encode(header) + b',\n"traceEvents":[')
    separator = b"\n"
    for line in _lines(plan, parts, left_out, zero_ns):
        put(separator + line)
        separator = b",\n"


def _header(
    plan: Plan, read: Sequence[Moved], left_out: dict[str, str], zero_ns: int
) -> dict[str, Any]:
    described: list[Any] = []
    moved = iter(read)
    for source in plan.sources:
        described += source.about
        for group in source.groups:
            described += [
                {"file": trace.shown, **trace.about, "events": one.events,
                 "error_ns": one.clock.error_ns, "clock": one.clock.words,
                 "problems": [*trace.problems, *_problems(one)]}
                for trace, one in zip(group.traces, moved, strict=False)
                if not one.left_out and one.clock is not None
            ]  # fmt: skip
    bounds = [about["error_ns"] for about in described if about["error_ns"] is not None]
    return {
        **plan.about,
        "epoch_ns": zero_ns,
        "error_ns": max(bounds, default=None),
        "sources": described,
        "left_out": [{"file": file, "reason": reason} for file, reason in left_out.items()],
        "problems": plan.problems,
    }


def _clocks(header: Mapping[str, Any], traces: int, check: Check) -> str:
    """Say how the clocks were aligned, and the error of that."""
    unknown = sum(source["error_ns"] is None for source in header["sources"])
    bound = header["error_ns"]
    known = [] if bound is None else [f"up to {bound / 1000:.1f} \u00b5s"]
    errors = [*known, *([f"unknown for {unknown} of {traces} traces"] if unknown else [])]
    words = [f"error {', '.join(errors)}"] if errors else []
    words += filter(None, [check.agreement()])
    return f"clocks: {header['method']}" + (f"; {', '.join(words)}" if words else "")


def _problems(moved: Moved) -> Iterator[str]:
    yield from moved.problems
    if moved.untimed:
        yield f"entries without a time: {moved.untimed} dropped"
    if moved.clock is not None and moved.clock.error_ns is None:
        yield "the error of its clock is unknown"


def _lines(
    plan: Plan, parts: Sequence[Part], left_out: dict[str, str], zero_ns: int
) -> Iterator[bytes]:
    places, arrows = count(), count(1)
    by_group = iter(parts)
    pids = {source.target: pid for pid, source in reversed([*enumerate(plan.sources, 1)])}
    begun: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for pid, source in enumerate(plan.sources, 1):  # in the order in which viewers show them
        numbers = count(len(plan.sources) + 1)
        if source.title:
            yield from named("process", pid, 0, source.title, places)
        for lane, name, row in rows(source.slices(left_out)):
            tid = next(numbers)
            yield from named("thread", pid, tid, name, places)
            for item in row:
                event = {"ph": "X", "cat": f"rlprof.{lane}", "name": item.name,
                         "pid": pid, "tid": tid, "args": item.args}  # fmt: skip
                at_ns = item.start_ns - zero_ns
                yield timed(event, at_ns, item.end_ns - item.start_ns)
                if lane != "phases":
                    continue
                key = item.name, item.args.get("step"), item.args.get("occurrence")
                if source.is_driver:
                    begun[key] = pid, tid, at_ns
                elif key in begun:
                    yield from _arrow(next(arrows), begun[key], (pid, tid, at_ns))
        for _, part in zip(source.groups, by_group, strict=False):
            for track in part.names:
                yield from named(*track, places)
        yield from _counters(source, {**pids, source.target: pid}, zero_ns)


def _arrow(number: int, begin: tuple[int, int, int], end: tuple[int, int, int]) -> Iterator[bytes]:
    """Draw an arrow from the driver's phase to a member's; ids of arrows in traces are longer."""
    for ph, (pid, tid, at_ns) in (("s", begin), ("f", end)):
        event = {"ph": ph, "id": number, "cat": "rlprof", "name": "phase", "pid": pid, "tid": tid}
        yield timed(event | ({"bp": "e"} if ph == "f" else {}), at_ns)


def _counters(source: Source, pids: Mapping[str, int], zero_ns: int) -> Iterator[bytes]:
    """Draw the counters of *source*, and of each engine it drives, on the process of their target.

    Perfetto calls the track by the names of the event and of its argument: `rss_bytes value`.
    """
    for sample in source.counters():
        pid = pids[str(sample.target)]
        for name, value in sample.values.items():
            if math.isfinite(value):
                event = {"ph": "C", "name": name, "pid": pid, "args": {"value": value}}
                yield timed(event, sample.time_ns - zero_ns)
