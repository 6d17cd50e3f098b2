"""The state of a live run: its processes, last steps, windows and counters."""

from __future__ import annotations

import heapq
import time
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any

from rlprof.rundir import SALVAGED, Here, is_alive, known
from rlprof.types import DRIVER, Window
from rlprof_report._top.state import LiveStep, Member, Part
from rlprof_report._top.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Run

_KEPT = 40
"""Steps to keep."""
_LONGEST = 1000
"""Steps of a window that are marked; one may be open until the run ends."""
_BACK = 32 << 20
_SILENT_S = 60
"""A process on another host counts as dead after this many seconds without a line."""
_STALE_NS = 15 * 10**9
"""Counters older than this are not shown."""
_ODD = (KeyError, TypeError, ValueError, OverflowError, AttributeError)
"""What a malformed line may raise."""


class Live:
    """Follows *run*; `look` reads what is new."""

    def __init__(self, run: Run) -> None:
        self.path, self.run_id = run.path, run.run_id
        self.members: dict[str, Member] = {}
        self.steps: dict[int, LiveStep] = {}
        """The latest of each number."""
        self.recorded: dict[int, int] = {}
        """Steps in which a window was open, and when it opened, epoch ns."""
        self.closings: deque[int] = deque(maxlen=_LONGEST)
        """When windows were closed, epoch ns."""
        self.leader: Member | None = None
        self.trajectories: dict[str, tuple[int, bool]] = {}
        """The last time a part of each ended, epoch ns, and whether all of it has ended."""
        self.is_running = True
        self._last = (-1, 0)
        """The number of the leader's last step, and its end, epoch ns."""
        self._since_ns = 0
        """When the leader's numbers were last set back."""
        self._manifest = Tail(run.path / "manifest")
        self._spans = Tail(run.path / "spans", _BACK)
        self._counters = Tail(run.path / "counters", _BACK)

    def look(self) -> None:
        """Read the lines written since the last call."""
        for records, take in (
            (chain.from_iterable(self._manifest.files()), self._event),
            (heapq.merge(*self._spans.files(), key=self._ended_ns), self._span),
            (chain.from_iterable(self._counters.files()), self._sample),
        ):
            for stem, record in records:
                try:
                    take(stem, record)
                except _ODD:
                    continue
        for number, _ in self._in_order()[:-_KEPT]:
            del self.steps[number]
        self._forget_trajectories()
        waiting = [member for member in self.members.values() if not member.has_ended]
        waiting.sort(key=lambda member: member is not self.leader)
        self.is_running = any(self._lives(member) for member in waiting)

    def running(self) -> tuple[int, LiveStep] | None:
        """Return the latest step if it has not ended."""
        youngest = self._in_order()[-1:]
        return youngest[0] if youngest and youngest[0][1].seconds is None else None

    def finished(self) -> list[tuple[int, LiveStep]]:
        """Return the steps that have ended, the latest last."""
        return [(n, step) for n, step in self._in_order() if step.seconds is not None]

    def counters(self) -> list[tuple[Member, str, Mapping[str, float]]]:
        """Return the latest values of each process and engine: target, engine, values."""
        now = time.time_ns()
        return [
            (member, target, values)
            for member in self.members.values()
            if not member.has_ended
            for target, (at, values) in sorted(member.counters.items())
            if now - at < _STALE_NS
        ]

    def _in_order(self) -> list[tuple[int, LiveStep]]:
        return sorted(self.steps.items(), key=lambda pair: (pair[1].since_ns, pair[0]))

    def _ended_ns(self, pair: tuple[str, Mapping[str, Any]]) -> int:
        stem, line = pair
        try:
            return int(line["w1"] if "w1" in line else line["t1"] + self.members[stem].offset_ns)
        except _ODD:
            return 0

    def _lives(self, member: Member) -> bool:
        lives = is_alive(member.here)
        if lives is not None:
            return lives
        folders = ("manifest", "spans", "counters")
        files = (self.path / folder / f"{member.name}.jsonl" for folder in folders)
        written = max((file.stat().st_mtime for file in files if file.exists()), default=0.0)
        return time.time() - written < _SILENT_S

    def _event(self, stem: str, line: Mapping[str, Any]) -> None:
        if stem.startswith(SALVAGED):
            return
        event = line["event"]
        if event == "process":
            target = line["target"]
            self.members[stem] = Member(
                stem, str(target["role"]), int(target["rank"]), int(target["world_size"]),
                known(Here, line["here"]),
            )  # fmt: skip
            return
        member = self.members[stem]
        if event == "clock":
            member.offset_ns = int(line["realtime_ns"]) - int(line["monotonic_ns"])
        elif event == "ended":
            member.has_ended = True
        elif event in ("opened", "closed") or (event == "failed" and line["hook"] == "start"):
            window = Window(**line["window"])
            key = window.id, str(line["tool"]), _engine(line.get("target"))
            if event == "opened":
                first, at = window.start_step, int(line["mono"]) + member.offset_ns
                last = min(window.end_step, first + _LONGEST)
                self.recorded.update(dict.fromkeys(range(first, last), at))
                member.windows[key] = at
            else:
                self.closings.append(int(line["mono"]) + member.offset_ns)
                member.windows.pop(key, None)

    def _span(self, stem: str, line: Mapping[str, Any]) -> None:
        if "w0" in line:  # the driver of a fleet tells of a member
            seconds = (line["w1"] - line["w0"]) / 1e9
            self._rank(self.members[line["of"]], line, seconds, int(line["w1"]))
            return
        member, is_phase = self.members[stem], line["kind"] == "phase"
        seconds, end_ns = (line["t1"] - line["t0"]) / 1e9, line["t1"] + member.offset_ns
        noted = line.get("attributes") or {}
        trajectory = noted.get("trajectory")
        if trajectory is not None:
            id_ = str(trajectory)
            _, has_ended = self.trajectories.get(id_, (0, False))
            self.trajectories[id_] = end_ns, has_ended or line["name"] == "trajectory"
        if is_phase and noted.get("source") != DRIVER:  # that lasts as long as the driver's own
            self._rank(member, line, seconds, end_ns)
        number = line.get("step")
        if not isinstance(number, int) or not self._leads(member, line["kind"]):
            return
        step = self._step(number, line["t0"] + member.offset_ns)
        if line["kind"] == "step":
            step.seconds = seconds
            self._last = number, end_ns
        else:
            _adopt(step.parts, line["id"], line.get("parent"), is_phase=is_phase)
        if is_phase:
            step.parts.append(Part(str(line["name"]), seconds, line.get("parent")))
        if line["kind"] != "span":
            step.end_ns = end_ns

    def _step(self, number: int, start_ns: int) -> LiveStep:
        """Return the leader's step *number*; begin it anew if the numbers were set back."""
        last, ended_ns = self._last
        if number < last and start_ns >= ended_ns:
            self._since_ns, self._last = ended_ns, (number, ended_ns)
        step = self.steps.setdefault(number, LiveStep(since_ns=self._since_ns))
        if step.since_ns < self._since_ns <= start_ns:
            ranks = step.ranks if step.seconds is None else step.later
            step = self.steps[number] = LiveStep(since_ns=self._since_ns, ranks=ranks)
        return step

    def _leads(self, member: Member, kind: str) -> bool:
        """Whether *member* leads: the driver of a fleet, else the lowest rank that has steps."""
        best = self.leader
        if kind == "span" or member is best:
            return member is best
        if best is None or _order(member) < _order(best):
            self.leader = member
            for step in self.steps.values():  # they were of another
                step.seconds, step.parts = None, []
            self._last = (-1, 0)
        return member is self.leader

    def _rank(self, member: Member, line: Mapping[str, Any], seconds: float, end_ns: int) -> None:
        number = line.get("step")
        if isinstance(number, int):
            step = self.steps.setdefault(number, LiveStep(since_ns=self._since_ns))
            is_late = step.seconds is not None and end_ns - seconds * 1e9 >= step.end_ns
            ranks = step.later if is_late else step.ranks
            mine = ranks.setdefault((member.role, str(line["name"])), {})
            before_s, _ = mine.get(member.name, (0.0, 0))
            mine[member.name] = before_s + seconds, end_ns

    def _forget_trajectories(self) -> None:
        """Forget those of ended steps; in an asynchronous run, some continue."""
        done = self.finished()
        if not done:
            return
        last = done[-1][1]
        began_ns = last.end_ns - int((last.seconds or 0) * 1e9)
        self.trajectories = {
            id_: (at, has_ended)
            for id_, (at, has_ended) in self.trajectories.items()
            if at >= (last.end_ns if has_ended else began_ns)
        }

    def _sample(self, stem: str, line: Mapping[str, Any]) -> None:
        member = self.members[stem]
        values = {str(name): float(value) for name, value in line["values"].items()}
        at = int(line["mono"]) + member.offset_ns
        member.counters[_engine(line.get("target"))] = at, values


def _order(member: Member) -> tuple[bool, int]:
    return member.role != DRIVER, member.rank


def _adopt(parts: list[Part], id_: int, parent: int | None, *, is_phase: bool) -> None:
    """Drop the phases inside a phase that has ended; those inside a span are its parent's."""
    if is_phase:
        parts[:] = [part for part in parts if part.parent != id_]
    for part in parts:
        if part.parent == id_:
            part.parent = parent


def _engine(target: Mapping[str, Any] | None) -> str:
    """Name the engine that a line is about; empty: it is about its own process."""
    if target is None or target.get("replica") is None:
        return ""
    return f"{target['role']} replica {target['replica']}"
