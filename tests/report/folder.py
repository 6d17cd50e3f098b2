"""A run folder that is built in memory and written once, or again as it grows."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from rlprof.rundir import Here

EPOCH_NS = 1_795_440_000_000_000_000
"""The wall clock at monotonic 0 of a run that has ended."""
_OF_A_HOST = ("mono", "monotonic_ns", "t0", "t1")
Json = dict[str, Any]
Id = int | None
Times = tuple[float, float]
"""Start and end."""


class Folder:
    """The lines of every process of a run; times are seconds of a clock that all share."""

    def __init__(
        self, config: Json | None = None, *, versions: Json | None = None, is_alive: bool = False
    ) -> None:
        self._config = config or {"tool": "none", "roles": {"actor": {}, "rollout": {}}}
        self._versions, self._is_alive = versions or {}, is_alive
        self._epoch_ns = time.time_ns() if is_alive else EPOCH_NS
        self.manifest: dict[str, list[Json]] = {}
        self.spans: dict[str, list[Json]] = {}
        self._counters: dict[str, list[Json]] = {}
        self._behind: dict[str, int] = {}

    def process(
        self,
        role: str,
        rank: int,
        *,
        replica: int | None = None,
        world: int = 1,
        host: str = "node",
        behind_ns: int = 0,
    ) -> str:
        """Add a process; return the stem of its files."""
        pid = 100 + len(self.manifest)
        stem = f"{role}-{rank}-{host}-{pid}"
        target = {"role": role, "rank": rank, "world_size": world, "replica": replica}
        here, versions = self._here(pid, host), self._versions
        self.manifest[stem] = [
            {"event": "process", "mono": 1, "target": target, "here": here, "versions": versions}
        ]
        self.spans[stem], self._counters[stem], self._behind[stem] = [], [], behind_ns
        return stem

    def span(
        self,
        stem: str,
        kind: str,
        name: str,
        times: Times,
        step: Id,
        *,
        parent: Id = None,
        **more: Any,
    ) -> int:
        """Add a span; return its id."""
        start, end = times
        line = {"kind": kind, "name": name, "t0": round(start * 1e9), "t1": round(end * 1e9)}
        line |= {"step": step, "thread": 1, "id": len(self.spans[stem]) + 1}
        line |= {} if parent is None else {"parent": parent}
        line |= {"attributes": more} if more else {}
        self.spans[stem].append(line)
        return len(self.spans[stem])

    def whole_step(
        self, stem: str, step: int, phases: Mapping[str, Times], times: Times | None = None
    ) -> None:
        """Add a step and its phases, which it encloses exactly unless *times* are given."""
        for name, one in phases.items():
            self.span(stem, "phase", name, one, step)
        every = [edge for one in phases.values() for edge in one]
        self.span(stem, "step", f"step {step}", times or (min(every), max(every)), step)

    def event(self, stem: str, name: str, at: float, **fields: Any) -> None:
        self.manifest[stem].append({"event": name, "mono": round(at * 1e9), **fields})

    def capture(
        self, stem: str, step: int, phase: str, times: Sequence[float], *, stop_s: float = 0.5,
        artifact: Mapping[str, Any] | None = None, **more: Any,
    ) -> Json:  # fmt: skip
        """Add a window with these three times; return the fields that its lines share."""
        opened, started, closed = times
        window = {"start_step": step, "end_step": step + 1, "phase": phase, "occurrence": 0}
        key = {"window": window, "tool": "torch", **more}
        self.event(stem, "opened", opened, **key, scratch="", asked={})
        self.event(stem, "started", started, **key, seconds=0.1, applied={}, unsupported={})
        self.event(stem, "closed", closed, **key, seconds=stop_s, reason="end", late="")
        if artifact is not None:
            self.event(stem, "artifact", closed + 0.5, **key, artifact=artifact)
            self.event(stem, "exported", closed + 0.5, **key, seconds=0.5)
        return key

    def counters(self, stem: str, at: float, target: Any = None, **values: float) -> None:
        """Add values of a process's counters, or those of its engine *target*."""
        line = {"mono": round(at * 1e9), "values": values}
        self._counters[stem].append(line | ({"target": target} if target else {}))

    def write(self, path: Path, *, until: float, ended: bool = True) -> Path:
        """Write all files to *path*, with clocks until *until*; a live run has no end."""
        last, is_over = round(until * 1e9), not self._is_alive
        owner = {"run_id": path.name, "attempt": 1, "opened_ns": self._epoch_ns,
                 "process": self._here(1)}  # fmt: skip
        header = {"run_id": path.name, "owner": owner, "rlprof": "0.1.0", "config": self._config}
        for name in ("manifest", "spans", "counters"):
            (path / name).mkdir(parents=True, exist_ok=True)
        (path / "run.json").write_text(json.dumps(header))
        for stem, (first, *lines) in self.manifest.items():
            told = [first, self._clock(0), *lines]
            told += [self._clock(last)] if is_over else []
            told += [{"event": "ended", "mono": last}] if is_over and ended else []
            texts = {"manifest": told, "spans": self.spans[stem], "counters": self._counters[stem]}
            for folder, content in texts.items():
                if content:
                    _write(path / folder / f"{stem}.jsonl", content, self._behind[stem])
        return path

    def _here(self, pid: int, host: str = "node") -> Json:
        if self._is_alive:  # every process is the one of the tests
            return attrs.asdict(Here.now())
        return {"host": host, "boot_id": host, "pid_namespace": "p", "pid": pid, "started": "1"}

    def _clock(self, at: int) -> Json:
        realtime = self._epoch_ns + at
        return {
            "event": "clock", "mono": at, "realtime_ns": realtime, "monotonic_ns": at,
            "bound_ns": 100,
        }  # fmt: skip


class Driven(Folder):
    """The run of a driver that goes through its phases one after another."""

    def __init__(self, path: Path, config: Json | None = None, **more: Any) -> None:
        super().__init__(config, **more)
        self.path, self.driver, self.now = path, self.process("driver", 0), 1.0

    def phase(self, step: int, name: str, seconds: float, *, tokens: int = 0) -> None:
        """Run a phase; one with tokens contains a trajectory."""
        times = self.now, self.now + seconds
        self.now += seconds
        if tokens:
            inside = times[0], times[1] - 1e-6
            part: Json = {"trajectory": f"{step}-0", "tokens": tokens}
            self.span(self.driver, "span", "request", inside, step, **part)
            self.span(self.driver, "span", "trajectory", inside, step, trajectory=f"{step}-0")
        self.span(self.driver, "phase", name, times, step)

    def step(self, step: int, phases: Mapping[str, float], *, tokens: int = 0) -> None:
        """Run a step; the first of its *phases* (seconds by name) has the tokens."""
        start = self.now
        for place, (name, seconds) in enumerate(phases.items()):
            self.phase(step, name, seconds, tokens=0 if place else tokens)
        self.span(self.driver, "step", f"step {step}", (start, self.now), step)

    def written(self) -> Path:
        return self.write(self.path, until=self.now)


def _write(file: Path, lines: list[Json], behind_ns: int) -> None:
    for line in lines:
        line |= {key: line[key] - behind_ns for key in _OF_A_HOST if key in line}
    file.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines))
