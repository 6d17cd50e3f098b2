"""A recorded run as values: the one way exporters, the command line and notebooks look at it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import attrs

from rlprof.errors import RlprofError
from rlprof.types import DRIVER
from rlprof_run import _spans
from rlprof_run._clock import unbroken
from rlprof_run._lines import read_lines
from rlprof_run._select import Times, covers, identity, is_in, roles_of, select
from rlprof_run._selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rlprof.rundir import Here
    from rlprof.types import Artifact, Clock, Target, Window
    from rlprof_run._counters import Sample
    from rlprof_run._spans import Span

ProcessState = Literal["running", "ended", "died"]
CaptureState = Literal["recording", "exporting", "whole", "partial", "empty", "failed", "lost"]


@attrs.frozen
class Process:
    """One process that wrote to the run folder."""

    name: str
    """The stem of its files."""
    target: Target
    here: Here
    clocks: tuple[Clock, ...]
    """As they were read, sorted; `rlprof_run.unbroken` makes them one clock."""
    state: ProcessState
    versions: Mapping[str, str]
    offset_ns: int = 0
    """The lead of its wall clock over that of its fleet's driver, in ns; subtracted in `clocks`."""
    offset_bound_ns: int | None = None
    """The largest possible error of `offset_ns`, in ns; None: this clock was not measured."""
    devices: tuple[str, ...] = ()
    """The devices that its launcher gave it, `node-a/cuda:0`; empty: unknown."""


@attrs.frozen
class CaptureResult:
    """The outcome of one tool's recording of one window of one target."""

    window: Window
    target: Target
    tool: str
    process: str
    state: CaptureState
    scratch: str
    """The folder, on the host of the process, that holds raw data until the export."""
    asked: Mapping[str, Any]
    applied: Mapping[str, Any]
    unsupported: Mapping[str, str]
    artifacts: tuple[Artifact, ...]
    request: str
    """The id of the request that asked for it; empty: the config did."""
    notes: tuple[str, ...]
    """Failures and whatever else a reader should know, in order."""
    opened_ns: int
    """When `start` was called: epoch ns, on the clock of the spans."""
    closed_ns: int | None
    """When `stop` had returned: epoch ns; None: the window was not closed."""
    clock_shift_ns: int
    """Nanoseconds to add to wall-clock times in its artifacts: the clock was stepped after it."""
    start_s: float | None
    """Seconds that `start` took."""
    stop_s: float | None
    """Seconds that `stop` took."""
    export_s: float | None
    """Seconds that `export` took, in the helper process."""
    started_ns: int | None = None
    """When `start` had returned: epoch ns."""
    exported_ns: int | None = None
    """When the process learned that `export` had ended: epoch ns; None: it never did."""
    configuring_ns: int | None = None
    """When `configure` was called, if this is the first window after that: epoch ns."""
    configured_ns: int | None = None
    """When it had returned: epoch ns."""
    late_start_s: float = 0.0
    """Seconds that a member of a fleet was still busy when its driver asked it to start."""
    late_stop_s: float = 0.0
    """The same for its stop, in seconds."""


@attrs.frozen
class Skipped:
    """A window that was due and not recorded, and why."""

    step: int
    target: Target
    reason: str
    request: str = ""
    """The id of the request it was due to."""


@attrs.frozen
class Answer:
    """The outcome of one request to one target of a live run."""

    id: str
    target: Target
    asked: Mapping[str, Any]
    state: Literal["waiting", "served", "refused", "unserved"]
    steps: tuple[int, ...]
    """The steps it was given."""
    error: str


@attrs.frozen
class Attached:
    """An engine that was attached to a process, or an actor to the driver of a fleet."""

    role: str
    target: Target
    """The target of its captures; one actor may be attached under several roles."""
    ranks: tuple[int, ...]
    """The global ranks it holds."""
    process: str
    """The process in whose windows it is recorded, and which answers requests for it."""


@attrs.frozen
class Left:
    """Files that members of a fleet wrote on their node, and that are not in the run folder."""

    node: str
    """The framework's name for it."""
    host: str
    folder: str
    files: int | None
    """None: not counted."""
    bytes: int | None
    reason: str


@attrs.frozen
class Run:
    """A run folder, read at one moment."""

    path: Path
    run_id: str
    attempt: int
    config: Mapping[str, Any]
    opened_ns: int
    """When its first process opened it: epoch ns."""
    processes: tuple[Process, ...]
    captures: tuple[CaptureResult, ...]
    skipped: tuple[Skipped, ...]
    answers: tuple[Answer, ...]
    """To requests made while it ran, in the order of their ids."""
    attached: tuple[Attached, ...]
    missing: tuple[Target, ...]
    """Targets the config asks for of which nothing was written."""
    left: tuple[Left, ...]
    """Files on other nodes, by folder."""
    problems: tuple[str, ...]
    """Lines that could not be read, files that are not there."""
    is_guest: bool = False
    """Whether `rlprof attach` made it: its training knows no run folder."""
    selection: Selection = attrs.field(factory=Selection)
    """The part of the run that this is."""
    _times: Times | None = None

    @property
    def is_running(self) -> bool:
        """Whether some process of the run is still alive."""
        return any(process.state == "running" for process in self.processes)

    @property
    def state(self) -> Literal["running", "ended", "died", "empty"]:
        """Whether it runs, ended or died, as its driver did; without one, all processes died."""
        if self.is_running:
            return "running"
        drivers = [process for process in self.processes if process.target.role == DRIVER]
        states = {process.state for process in drivers or self.processes}
        return "ended" if "ended" in states else "died" if states else "empty"

    @cached_property
    def by_name(self) -> dict[str, Process]:
        """The processes by the stem of their files."""
        return {process.name: process for process in self.processes}

    def only(self, selection: Selection) -> Run:
        """Return the part of this run that *selection* names; raise RunError if that is empty.

        Captures are those of the selected steps, windows, roles, tools and time. A process is
        there if its role is selected, or if it holds one of these captures. What else the run has
        to say (skipped, missing, answers, problems) stays as it is.
        """
        return select(self, selection)

    def _repr_html_(self) -> str:
        """Show the slow step over all processes, in a notebook."""
        from html import escape

        try:
            from rlprof_report import notebook
        except ImportError:
            words = (
                f"run {self.run_id}: {len(self.processes)} processes, {len(self.captures)} captures"
            )
            return f"<p>{escape(words)}; to see its slow step here, pip install rlprof-report</p>"
        shown: str = notebook(self)
        return shown

    def spans(self, problems: list[str] | None = None) -> Iterator[Span]:
        """Read all spans, process by process, in the order they ended.

        Of a part of a run: those of the selected roles, steps and time. A span without a step is
        there if it overlaps a selected step of any process. If windows are selected, only spans
        that overlap one of them are there. Unreadable lines are skipped and reported to
        *problems*. Last come phases that the driver of a fleet wrote for its members, unless a
        member wrote the phase itself.
        """
        problems, chosen = [] if problems is None else problems, self.selection
        is_all = chosen.is_all
        by_driver = sorted(self.path.glob("spans/+*.jsonl"))
        known: set[tuple[Any, ...]] = set()
        for process, clocks in self._selected() if chosen.has_spans() else ():
            for line in read_lines(self.path / "spans" / f"{process.name}.jsonl", problems):
                if by_driver and line.get("kind") == "phase":
                    known.add(_phase(process.name, line))
                span = _span(process, clocks, line)
                if span is not None and (is_all or covers(span, chosen, self._times)):
                    yield span
        mine = {process.name: (process, clocks) for process, clocks in self._selected()}
        mark = f'"{next(iter(mine))}"'.encode() if len(mine) == 1 else b""
        for file in by_driver if mine and chosen.has_spans() else ():
            for line in read_lines(file, problems, mark):
                of = line.get("of")
                if isinstance(of, str) and of in mine and _phase(of, line) not in known:
                    span = _span(*mine[of], line)
                    if span is not None and (is_all or covers(span, chosen, self._times)):
                        yield span

    def counters(self, problems: list[str] | None = None, *, name: str = "") -> Iterator[Sample]:
        """Read all counters, process by process; with *name*, only samples with that counter.

        Those of the roles, time, steps or windows of a selection. *problems* gets unreadable lines.
        """
        from rlprof_run._counters import sample_from_record

        problems, chosen = [] if problems is None else problems, self.selection
        for process, clocks in self._selected() if chosen.has_spans() else ():
            file = self.path / f"counters/{process.name}.jsonl"
            for line in read_lines(file, problems, name.encode()):
                try:
                    sample = sample_from_record(line, process=process, clocks=clocks)
                except (KeyError, TypeError, ValueError, OverflowError):
                    continue
                if is_in(sample.time_ns, chosen, self._times):
                    yield sample

    def frame(self, kind: str, problems: list[str] | None = None) -> Any:
        """Return a pyarrow Table that pandas, Polars and DuckDB take.

        *kind* is `spans`, `steps`, `captures`, `requests` or `events`; needs
        `rlprof-report[parquet]`. Unreadable lines are skipped and reported to *problems*.
        """
        try:
            from rlprof_report.tables import frame
        except ModuleNotFoundError:
            raise RlprofError(
                "frame: needs rlprof-report; install it with: pip install 'rlprof-report[parquet]'"
            ) from None
        return frame(self, kind, problems)

    def _selected(self) -> Iterator[tuple[Process, list[Clock]]]:
        """Give the processes of the selected roles, each with its clock."""
        roles = roles_of(self, self.selection)
        for process in self.processes:
            if roles is None or identity(process.target) in roles:
                yield process, unbroken(process.clocks)[0]


def _phase(process: str, line: Mapping[str, Any]) -> tuple[Any, ...]:
    """Identify a phase, written by any process."""
    names = (line.get("step"), line.get("name"), line.get("occurrence", 0))
    return process, *(str(one) for one in names)


def _span(process: Process, clocks: list[Clock], line: Mapping[str, Any]) -> Span | None:
    try:
        return _spans.span_from_record(
            line, target=process.target, process=process.name, clocks=clocks,
            offset_ns=process.offset_ns,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
