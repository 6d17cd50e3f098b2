"""The exporter: it looks through every source once, then writes them one after another.

Twice, because viewers drop what lies before time zero: the earliest event must be known before
the first is written. So no more than one trace, or the spans of one process, is in memory.
"""

from __future__ import annotations

import gzip
import logging
import os
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import hookimpl
from rlprof.errors import one_line
from rlprof.rundir import unbroken
from rlprof_timeline._lines import encode, timed
from rlprof_timeline._rows import rows
from rlprof_timeline._spans import Slice, of_span, of_windows
from rlprof_timeline._traces import Trace, UnreadableTraceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlprof import Target
    from rlprof.rundir import Process, Run, Span

log = logging.getLogger("rlprof.timeline")

FILE = "timeline.json.gz"
_LEVEL = 4
"""Of compression: 6 took 1.4 times as long for 4 % and 13 % less, on two traces."""


class Timeline:
    """Lay all traces and spans of a run on one clock, in one file that Perfetto opens."""

    @hookimpl
    def export(self, run: Run, out: Path) -> list[Path]:
        """Write `timeline.json.gz` into *out*; it is whole or not there."""
        left_out: dict[str, str] = {}
        while True:
            sources = [_Source(run, process) for process in sorted(run.processes, key=_place)]
            for source in sources:
                source.survey(left_out)
            try:
                return [_write(run, sources, left_out, out)]
            except UnreadableTraceError as exc:  # it was whole a moment ago: begin again without
                left_out[exc.path] = exc.reason


@attrs.define(eq=False)
class _Source:
    """A process of the run: its spans, its windows and its traces."""

    run: Run
    process: Process
    pid: int = 0
    spans: int = 0
    """How many there were at the first look; a run that goes on writes more."""
    windows: list[Slice] = attrs.field(factory=list)
    traces: dict[tuple[Any, ...], list[Trace]] = attrs.field(factory=dict)
    """By target, for a process may hold several engines, by tool, and by place in a window: two
    traces of one window may share process numbers."""
    starts: list[int] = attrs.field(factory=list)
    """When its first span and each of its windows and traces began."""

    def survey(self, left_out: dict[str, str]) -> None:
        """Look at everything once; what cannot be read goes into *left_out*."""
        captures = [item for item in self.run.captures if item.process == self.process.name]
        for capture in captures:
            found = [artifact for artifact in capture.artifacts if artifact.kind == "trace"]
            for nth, artifact in enumerate(found, 1):
                key = (*_rank(capture.target), capture.tool, nth)
                before = self.traces.setdefault(key, [])
                tracks = before[0].tracks if before else {}
                trace = Trace(self.run.path / artifact.path, artifact, capture, tracks)
                try:
                    if artifact.path not in left_out:
                        trace.survey()
                        before.append(trace)
                except UnreadableTraceError as exc:
                    left_out[exc.path] = exc.reason
                    words = one_line(exc, longest=1000)  # a path may hold anything
                    log.warning("%s; left out of the timeline", words)
        self.windows = list(of_windows(captures, self.process, left_out))
        first = None
        problems: list[str] = []
        for span in self.read_spans(problems):
            self.spans += 1
            first = span.start_ns if first is None else min(first, span.start_ns)
        for problem in problems:
            file, _, reason = problem.partition(": ")
            left_out[file] = reason
        traced = [trace.earliest_ns for trace in self.all_traces()]
        begun = [first, *traced, *(window.start_ns for window in self.windows)]
        self.starts = [start for start in begun if start is not None]

    def read_spans(self, problems: list[str] | None = None) -> Iterator[Span]:
        """Read the spans of this process alone."""
        return attrs.evolve(self.run, processes=(self.process,)).spans(problems)

    def all_traces(self) -> Iterator[Trace]:
        """Go through the traces, window by window of each tool."""
        return chain.from_iterable(traces for _, traces in sorted(self.traces.items()))

    def number(self, numbers: Iterator[int], places: Iterator[int]) -> Iterator[bytes]:
        """Number the tracks in their order, and name them.

        No two numbers in the file are equal: with the number of a process, a thread would pass
        for its main thread. Perfetto orders threads by number and ignores the sort index.
        """
        self.pid = next(numbers)
        title = str(self.process.target)
        yield from _named("process", self.pid, 0, f"{title} · {self.process.here.host}", places)
        for (*_, tool, nth), traces in sorted(self.traces.items()):
            tracks = traces[0].tracks.values() if traces else ()
            target = str(traces[0].capture.target) if traces else title
            for track in sorted(tracks, key=lambda track: track.sort_index):
                track.number = pid = next(numbers)
                whose = f"{track.name} {track.labels}".strip()
                parts = (target, tool if nth == 1 else f"{tool} {nth}", whose)
                yield from _named("process", pid, 0, " · ".join(filter(None, parts)), places)
                for thread in sorted(track.threads.values(), key=lambda track: track.sort_index):
                    thread.number = next(numbers)
                    yield from _named("thread", pid, thread.number, thread.name, places)

    def lines(self, numbers: Iterator[int], ids: Iterator[int], zero_ns: int) -> Iterator[bytes]:
        """Yield the spans and windows, then trace after trace."""
        slices = [*map(of_span, islice(self.read_spans(), self.spans)), *self.windows]
        places = count()
        for lane, name, row in rows(slices):
            tid = next(numbers)
            yield from _named("thread", self.pid, tid, name, places)
            for item in row:
                event = {"ph": "X", "cat": f"rlprof.{lane}", "name": item.name,
                         "pid": self.pid, "tid": tid, "args": item.args}  # fmt: skip
                yield timed(event, item.start_ns - zero_ns, item.end_ns - item.start_ns)
        del slices
        for trace in self.all_traces():
            yield from trace.lines(ids, zero_ns)

    def about(self) -> Iterator[dict[str, Any]]:
        """Describe what of it is in the file."""
        target = str(self.process.target)
        bound = max(clock.bound_ns for clock in unbroken(self.process.clocks)[0])
        yield {"file": f"spans/{self.process.name}.jsonl", "target": target,
               "events": self.spans, "error_ns": bound, "problems": []}  # fmt: skip
        for trace in self.all_traces():
            problems = {
                f"{trace.artifact.status}: {trace.artifact.note}": trace.artifact.status != "whole",
                f"{trace.untimed} entries without a time dropped": trace.untimed,
                "the error of its clock is unknown": trace.error_ns is None,
            }
            yield {"file": trace.artifact.path, "target": str(trace.capture.target),
                   "tool": trace.capture.tool, "window": trace.capture.window.id,
                   "events": trace.events, "error_ns": trace.error_ns, "clock": trace.clock,
                   "problems": [text for text, is_so in problems.items() if is_so]}  # fmt: skip


def _place(process: Process) -> tuple[Any, ...]:
    return process.target.role != "driver", *_rank(process.target), process.name


def _rank(target: Target) -> tuple[Any, ...]:
    return target.role, -1 if target.replica is None else target.replica, target.rank


def _named(kind: str, pid: int, tid: int, name: str, places: Iterator[int]) -> Iterator[bytes]:
    event = {"ph": "M", "pid": pid, "tid": tid}
    if name:
        yield encode(event | {"name": f"{kind}_name", "args": {"name": name}})
    yield encode(event | {"name": f"{kind}_sort_index", "args": {"sort_index": next(places)}})


def _write(run: Run, sources: list[_Source], left_out: dict[str, str], out: Path) -> Path:
    starts = [start for source in sources for start in source.starts]
    zero_ns = (min(starts, default=run.opened_ns) // 1000 - 1) * 1000
    described = [about for source in sources for about in source.about()]
    bounds = [about["error_ns"] for about in described if about["error_ns"] is not None]
    header = {
        "run": run.run_id,
        "attempt": run.attempt,
        "epoch_ns": zero_ns,
        "error_ns": max(bounds, default=None),
        "method": "wall clock of each host",
        "sources": described,
        "left_out": [{"file": file, "reason": reason} for file, reason in left_out.items()],
        "problems": run.problems,
    }
    numbers, places, ids = count(1), count(), count(1)
    named = [line for source in sources for line in source.number(numbers, places)]
    lines = (line for source in sources for line in source.lines(numbers, ids, zero_ns))
    part = out / f".{FILE}.{os.getpid()}"
    try:
        # Without name and time in its head, the same run gives the same file.
        with part.open("wb") as file, gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as stream:
            stream.write(b'{"rlprof":' + encode(header) + b',\n"traceEvents":[')
            separator = b"\n"
            for line in chain(named, lines):
                stream.write(separator + line)
                separator = b",\n"
            stream.write(b"\n]}\n")
        return part.replace(out / FILE)
    finally:  # also on Ctrl-C
        part.unlink(missing_ok=True)
