"""The helper thread: the only one that touches the run folder once training runs.

It writes the records that working threads leave in memory, at most a second later, and drives
exports. A hanging run folder (a dead NFS server) hangs only this thread.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import Journal, as_line, read_clock, span_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rlprof.config import Config
    from rlprof.rundir import RawSpan
    from rlprof.session._boundary import Boundary, Guard
    from rlprof.session._exports import Exports
    from rlprof.session._job import Job

_TICK_S = 1.0
_EXPORT_TICK_S = 0.2
_CLOCK_S = 10.0
_FLUSH_S = 1.0
"""The longest wait of a step, once, for a run folder that does not answer."""
_STUCK_S = 10.0
"""A helper thread that stands still this long waits for a run folder that does not answer."""
_MOST_SPANS = 200_000
"""Lines kept in memory while the run folder takes none; more are counted and dropped."""


class Scribe:
    """Writes one process' manifest and spans, and runs its exports."""

    def __init__(
        self, config: Config, folder: Path, name: str, *, scratch: Path, boundary: Boundary
    ) -> None:
        self.watchers: list[Callable[[], None]] = []
        """Called once a second or so."""
        self.dropped = self.lost = 0
        self.failed: set[str] = set()
        """The windows with a line about a failure."""
        self.figures: dict[str, float] = {}
        """Figures of the last step, if a listener makes them. Replaced whole, never changed."""
        self.span_watchers: dict[Callable[[Sequence[RawSpan]], object], Guard] = {}
        """Functions that see spans before they are written, those of a step until it ended."""
        self._most_bytes = config.spans.bytes
        """Size of the file of spans; beyond it, only steps and phases are written."""
        self._left_out = self._left_out_before = self._reported = 0
        """The spans so far; when the last step ended; when last reported."""
        self.name = name
        """The name of its files."""
        self.manifest = folder / "manifest" / f"{name}.jsonl"
        self._folder = folder
        self._scratch = scratch
        self._export_timeout_s = config.limits.export_timeout_s
        self.boundary = boundary
        self._manifest = Journal(self.manifest)
        self._spans = Journal(folder / "spans" / f"{name}.jsonl")
        self._records: deque[dict[str, Any]] = deque()
        self._raw: deque[RawSpan] = deque()
        self._rubbish: deque[Path] = deque()
        self._tickets: deque[threading.Event] = deque()
        self.jobs: deque[Job] = deque()
        """The captures that are not exported yet."""
        self._exports: Exports | None = None
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._is_late = False
        self._is_ending = False
        self._moved = 0.0
        """When it moved last."""
        self._next_clock = 0.0
        threading.Thread(target=self._live, name="rlprof-scribe", daemon=True).start()

    def record(self, event: str, **fields: Any) -> None:
        """Leave a line for the manifest."""
        if event in ("failed", "missed"):
            self.failed.add(str(fields.get("window")))
        self._records.append({"event": event, "mono": time.monotonic_ns(), **fields})

    def clock(self) -> None:
        """Leave a pair of clocks for the manifest."""
        self.record("clock", **attrs.asdict(read_clock()))

    def span(self, raw: RawSpan) -> None:
        """Leave a span; if too many wait, steps and phases only."""
        waiting = len(self._raw)
        if waiting >= _MOST_SPANS and raw[0] == "span":
            self.dropped += 1
            return
        self._raw.append(raw)
        if waiting == _MOST_SPANS // 2:
            self._wake.set()

    def discard(self, folder: Path) -> None:
        """Remove a scratch folder that is no longer needed."""
        self._rubbish.append(folder)

    def export(self, job: Job) -> None:
        """Export a capture, after those before it."""
        self.jobs.append(job)

    def hurry(self) -> None:
        """Write waiting records now rather than within a second."""
        self._wake.set()

    def flush(self) -> None:
        """Wait until waiting records are on disk, but not for a run folder that does not answer."""
        if self._is_late:
            return
        ticket = threading.Event()
        self._tickets.append(ticket)
        self._wake.set()
        if not ticket.wait(_FLUSH_S):
            self._is_late = True
            self.boundary.warn("run folder", f"{self._folder} is slower than {_FLUSH_S:g} s")

    def close(self) -> None:
        """Write and export the rest, within the time of exports, and end the thread."""
        self._is_ending = True
        self._wake.set()
        warned = self._moved = time.monotonic()
        while not self._ended.wait(0.5):  # join() would take a thread for dead if a signal cuts it
            now = time.monotonic()
            exports = self._exports
            is_here = exports is not None and exports.is_here
            if now - self._moved > (self._export_timeout_s if is_here else _STUCK_S):
                self._abandon()
                reason = f"{self._folder} does not answer; what is not written yet is lost"
                self.boundary.warn("close", reason)
                return
            if self.jobs and now - warned > _STUCK_S / 2:
                warned = now
                self.boundary.log(f"waits for exports: {len(self.jobs)} left", logging.WARNING)

    def _live(self) -> None:
        is_ending = False
        try:
            while not is_ending or self.jobs:
                is_ending = self._is_ending
                tick_s = 0.02 if is_ending else _EXPORT_TICK_S if self.jobs else _TICK_S
                self._wake.wait(tick_s)
                self._wake.clear()
                # What could not be written is kept for the next turn.
                self.boundary.call("helper thread", self._turn)
                self._moved = time.monotonic()
            self.boundary.call("helper thread", self._last_turn)
        finally:
            self._ended.set()

    def _turn(self) -> None:
        for watch in tuple(self.watchers):  # first: time limits hold on a full disk, too
            watch()
        tickets = [self._tickets.popleft() for _ in range(len(self._tickets))]
        if time.monotonic() >= self._next_clock:
            self._next_clock = time.monotonic() + _CLOCK_S
            self.clock()
            self._look()
            self._report_left_out()
        for line in self.boundary.call("export", self.exported, self._abandon) or ():
            self.record(**line)
            if line["event"] == "failed":
                self.boundary.warn(f"{line['tool']}.export", line["error"])
        try:
            self._write_manifest()
            self._write_spans()
        finally:
            for ticket in tickets:
                ticket.set()
        self._tidy()

    def exported(self) -> list[dict[str, Any]]:
        """Return the manifest lines of ended exports, and start the next."""
        if not self.jobs:
            return []
        if self._exports is None:
            from rlprof.session._exports import Exports

            self._exports = Exports(self.jobs, self._export_timeout_s, self.discard)
        return self._exports.poll()

    def _abandon(self, _: str = "") -> None:
        """Give up the exports; their raw data stay in place."""
        self.jobs.clear()
        if self._exports is not None:
            self._exports.abandon()

    def _look(self) -> None:
        """Report if the run folder was removed: writes to open files still succeed silently."""
        if not (self._folder / "run.json").exists():
            self.boundary.warn("run folder", f"{self._folder} was removed; what is in it is lost")

    def _last_turn(self) -> None:
        self._look()
        with suppress(OSError):
            self._write_spans()
        self.dropped += self._spans.lines_waiting() + len(self._raw)
        if self.dropped:
            self.record("dropped", spans=self.dropped)
            why = "the disk takes no more, or they came too fast"
            self.boundary.warn("spans", f"{self.dropped} could not be written: {why}")
        self._report_left_out()
        self.clock()
        self.record("ended")
        with suppress(OSError):
            self._write_manifest()
        if len(self._manifest):
            self.lost = self._manifest.lines_waiting()
            self.boundary.warn("manifest", f"its last {self.lost} lines could not be written")
        self._manifest.close()
        self._spans.close()
        self._tidy()
        if self._scratch.exists():
            from rlprof.session._exports import prune

            prune(self._scratch)

    def _tidy(self) -> None:
        while self._rubbish:
            shutil.rmtree(self._rubbish.popleft(), ignore_errors=True)

    def _write_manifest(self) -> None:
        records = [as_line(self._records.popleft()) for _ in range(len(self._records))]
        self._manifest.write(records)
        self._is_late = False

    def _write_spans(self) -> None:
        count = 0 if len(self._spans) else len(self._raw)  # they wait where counted
        self._spans.write(self._span_lines(count))

    def _span_lines(self, count: int) -> Iterator[bytes]:
        """Return the lines of the next *count* spans, after showing them to the span watchers."""
        batch: list[RawSpan] = []
        for left in range(count - 1, -1, -1):
            batch.append(self._raw.popleft())
            if left and batch[-1][0] != "step":
                continue
            for see, guard in tuple(self.span_watchers.items()):
                with guard:
                    see(batch)
            for raw in batch:
                if raw[0] != "span" or self._spans.given < self._most_bytes:
                    yield span_line(raw)
                else:
                    self._left_out += 1
            if batch[-1][0] == "step" and self._left_out > self._left_out_before:
                yield span_line(self._summary(batch[-1]))
                self._left_out_before = self._left_out
            batch.clear()

    def _summary(self, step: RawSpan) -> RawSpan:
        """Make one span that stands for those left out until *step* ended."""
        _, _, start, end, number, thread, step_id, _, _, _ = step
        count = self._left_out - self._left_out_before
        noted = {"left_out": count, "figures": self.figures}
        return "span", "summary", start, end, number, thread, -step_id, step_id, 0, noted

    def _report_left_out(self) -> None:
        if self._left_out > self._reported:
            self._reported = self._left_out
            self.record("left_out", spans=self._left_out)
