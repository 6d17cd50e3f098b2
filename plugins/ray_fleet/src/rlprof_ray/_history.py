"""Phases of members outside of windows, from Ray's record of their calls.

A member hears of the driver's phases only while a window is open on it. Ray records when each of
its calls ran in any step: a call that ran in a phase of the driver is the member's phase of that
name. A separate thread reads every few seconds, so no edge and no helper thread waits for Ray.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from bisect import bisect_left, bisect_right
from collections import deque
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import RlprofError
from rlprof.rundir import SALVAGED, Journal, as_line
from rlprof_ray._calls import Record
from rlprof_ray._tie import tie
from rlprof_ray._unrecorded import Unrecorded
from rlprof_ray._waits import Waits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlprof import Session
    from rlprof.rundir import RawSpan
    from rlprof_ray._calls import Call
    from rlprof_ray._member import Member

log = logging.getLogger("rlprof")

TOLD = "RAY_task_events_report_interval_ms"
"""How often workers report their calls to Ray: a setting of Ray, a second by default."""
_EVERY_S = 2.0
_SHARE = 20
"""Reading a full record takes Ray seconds; the pause is this many times as long."""
_LAST_S, _MOST_LAST_S = 2.5, 20.0
"""How long closing a fleet waits for the last read; the second value is for a full record."""
_LAST_LOOKS = 3
"""Calls are kept for this many more reads."""
_MOST_CALLS = 100_000
"""Kept in memory; Ray keeps no more, either."""
_MOST_STRETCHES = 64
"""Stretches of one member in one phase; later calls belong to the last."""
_FIRST_ID = 1 << 40
"""Above the ids of the spans that members write, so that ids stay unique."""


@attrs.frozen
class _Phase:
    name: str
    step: int | None
    occurrence: int
    start_ns: int
    """Wall clock of the driver."""
    end_ns: int
    is_step: bool


@attrs.define
class _Stretch:
    """Calls of one member that overlap, as one."""

    start_ns: int
    end_ns: int
    name: str
    calls: int = 1


class History:
    """Writes `spans/+ray-<driver>.jsonl` during the run."""

    def __init__(
        self, session: Session, members: Mapping[str, Member], *, names_calls: bool
    ) -> None:
        self._session = session
        self._members = members
        self._names_calls = names_calls
        """Whether calls in a step count as phases: the driver has none."""
        self._journal = Journal(session.run_dir / "spans" / f"{SALVAGED}ray-{session.name}.jsonl")
        self._record = Record()
        self._unrecorded = Unrecorded(session.run_dir / "manifest")
        self._waits = Waits()
        self._tie = tie()
        self._ended: deque[_Phase] = deque()
        """Steps and phases that the session is about to write."""
        self._phases: list[_Phase] = []
        """Ended, and not written yet."""
        self._calls: dict[str, list[Call]] = {}
        self._ids = _FIRST_ID
        self._bytes, self._most_bytes = 0, session.config.spans.bytes
        self._look_s = 0.0
        """How long the last read took; a full record takes seconds."""
        self._ending = threading.Event()
        session.watch_spans(self._see)
        self._thread = threading.Thread(target=self._live, name="rlprof-ray-calls", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Read once more, after the workers reported the last phase; wait a bounded time."""
        self._ending.set()
        self._thread.join(min(_LAST_S + _LAST_LOOKS * self._look_s, _MOST_LAST_S))

    def _see(self, spans: Sequence[RawSpan]) -> None:
        ahead_ns = time.time_ns() - time.monotonic_ns()
        for kind, name, start_ns, end_ns, step, _, _, _, occurrence, _ in spans:
            if kind in ("phase", "step"):
                times = start_ns + ahead_ns, end_ns + ahead_ns
                self._ended.append(_Phase(name, step, occurrence, *times, kind == "step"))

    def _live(self) -> None:
        pause = _EVERY_S
        while not self._ending.wait(pause):
            began = time.monotonic()
            self._try(is_last=False)
            self._look_s = time.monotonic() - began
            pause = max(_EVERY_S, _SHARE * self._look_s)
        self._try(is_last=True)
        self._unrecorded.end()
        self._journal.close()

    def _try(self, *, is_last: bool) -> None:
        try:
            self._look(is_last=is_last)
        except RlprofError as exc:  # this Ray does not show them, now or later
            self._session.write("problem", reason=f"phases of members: {exc}")
            self._members = {}
        except Exception as exc:  # Ray is ending, or the disk is full: the next read continues
            log.debug("Ray's record of calls: %s", exc)

    def _look(self, *, is_last: bool) -> None:
        self._unrecorded.touch()
        everyone = list(self._members.values())
        self._phases += [self._ended.popleft() for _ in range(len(self._ended))]
        if not everyone or not self._phases or self._bytes > self._most_bytes:
            self._phases.clear()
            return
        is_cut, report_s = tie() != self._tie, _report_s()
        if is_last and not is_cut:
            last_ns = max(phase.end_ns for phase in self._phases)
            time.sleep(min(max(0.0, report_s - (time.time_ns() - last_ns) / 1e9), report_s))
        until_ns = time.time_ns() - (0 if is_last else int(report_s * 1e9))
        news = [] if is_cut else self._record.news({member.id for member in everyone})
        self._unrecorded.name(everyone, news)
        members = {worker: (member, stem) for member in everyone
                   for worker, stem in member.workers.items()}  # fmt: skip
        self._calls = {worker: calls for worker, calls in self._calls.items() if worker in members}
        for call in news:
            if call.worker in members:
                self._calls.setdefault(call.worker, []).append(call)
        due = [phase for phase in self._phases if phase.end_ns <= until_ns]
        self._phases = [phase for phase in self._phases if phase.end_ns > until_ns]
        self._write(due, members)
        self._forget(max((phase.start_ns for phase in due if phase.is_step), default=0), members)

    def _write(self, due: Sequence[_Phase], members: dict[str, tuple[Member, str]]) -> None:
        lines: list[bytes] = []
        for worker, calls in self._calls.items():
            member, stem = members[worker]
            calls.sort(key=_middle)
            count = len(lines)
            for phase, own in self._named(due, calls):
                for stretch in _stretches(own, phase, member.offset_ns):
                    self._ids += 1
                    ends = (stretch.start_ns - member.offset_ns, stretch.end_ns - member.offset_ns)
                    self._waits.add(phase.step, phase.name, member.target, *ends)
                    lines.append(as_line(_line(stem, member, phase, stretch, self._ids)))
            if len(lines) > count:
                self._unrecorded.introduce(stem)
        self._bytes += sum(map(len, lines))
        if self._bytes > self._most_bytes:
            reason = f"phases of members fill spans.bytes {self._most_bytes:,}; no more are written"
            self._session.write("problem", reason=reason)
        self._journal.write(lines)
        for phase in due:
            wait_s = self._waits.of(phase.step) if phase.is_step else None
            if wait_s is not None:
                self._session.add_figures(phase.step, {"rlprof/wait_slowest_s": wait_s})

    def _named(
        self, due: Sequence[_Phase], calls: list[Call]
    ) -> Iterator[tuple[_Phase, Sequence[Call]]]:
        """Return each phase with the calls that may belong to it; in a step, each method is one."""
        methods: dict[str, list[Call]] = {}
        for call in calls if self._names_calls else ():
            methods.setdefault(call.name.rpartition(".")[2], []).append(call)
        for phase in due:
            own = methods if phase.is_step else {phase.name: calls}
            for name, theirs in own.items():
                yield attrs.evolve(phase, name=name), theirs

    def _forget(self, before_ns: int, members: dict[str, tuple[Member, str]]) -> None:
        """Drop calls of written steps, and the oldest calls if there are no steps."""
        most = _MOST_CALLS // max(1, len(self._calls))
        for worker, calls in self._calls.items():
            first = bisect_left(calls, before_ns + members[worker][0].offset_ns, key=_middle)
            del calls[: max(first, len(calls) - most)]


def _stretches(calls: Sequence[Call], phase: _Phase, offset_ns: int) -> list[_Stretch]:
    """Return the times of a member's calls of which at least half is inside *phase*."""
    start_ns, end_ns = phase.start_ns + offset_ns, phase.end_ns + offset_ns
    first = bisect_left(calls, start_ns, key=_middle)
    last = bisect_right(calls, end_ns, key=_middle)
    found: list[_Stretch] = []
    for call in sorted(calls[first:last], key=lambda call: call.start_ns):
        inside = min(call.end_ns, end_ns) - max(call.start_ns, start_ns)
        if 2 * inside < call.end_ns - call.start_ns:
            continue
        if not found or (call.start_ns >= found[-1].end_ns and len(found) < _MOST_STRETCHES):
            found.append(_Stretch(call.start_ns, call.end_ns, call.name))
            continue
        own = found[-1]
        own.end_ns, own.calls = max(own.end_ns, call.end_ns), own.calls + 1
        if call.name not in own.name.split(", "):
            own.name += f", {call.name}"
    return found


def _line(
    stem: str, member: Member, phase: _Phase, stretch: _Stretch, own_id: int
) -> dict[str, Any]:
    calls = {} if stretch.calls == 1 else {"calls": stretch.calls}
    replica = {} if member.target.replica is None else {"replica": member.target.replica}
    return {
        "of": stem, "kind": "phase", "name": phase.name,
        "w0": stretch.start_ns, "w1": stretch.end_ns, "step": phase.step, "thread": 0,
        "id": own_id, "occurrence": phase.occurrence,
        "attributes": {"source": "ray", "call": stretch.name, **calls, **replica},
    }  # fmt: skip


def _middle(call: Call) -> int:
    return (call.start_ns + call.end_ns) // 2


def _report_s() -> float:
    """Return how long workers take to report to Ray: its setting, and some time."""
    return int(os.environ.get(TOLD, "1000")) / 1000 + 0.2
