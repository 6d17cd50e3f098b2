"""Run folders written line by line, with steps and phases as long as a test says."""

from __future__ import annotations

import json
import time

from rlprof.rundir import Here

BEGAN_NS = 1_795_440_000_000_000_000
"""The wall clock at monotonic 0 of a run that is over."""


class WrittenRun:
    """The run of one driver, step by step; what it wrote may be read between any two calls."""

    def __init__(self, path, *, config=None, versions=None, here=None, began_ns=BEGAN_NS):
        self.path, self.now, self._ids = path, 1_000_000_000, 0
        here = here or {
            "host": "node-a", "boot_id": "b", "pid_namespace": "p", "pid": 1, "started": "1",
        }  # fmt: skip
        for folder in ("manifest", "spans", "counters"):
            (path / folder).mkdir(parents=True)
        owner = {"run_id": path.name, "attempt": 1, "opened_ns": began_ns, "process": here}
        header = {"run_id": path.name, "owner": owner, "rlprof": "0.1.0", "config": config or {}}
        (path / "run.json").write_text(json.dumps(header))
        self.here, self.versions, self.began_ns = here, versions or {}, began_ns
        self.process("driver", 0)

    @classmethod
    def alive(cls, path, **more):
        """Write the run of the process that tests: it goes on as long as they do."""
        here = Here.now()
        names = ("host", "boot_id", "pid_namespace", "pid", "started")
        own = {name: getattr(here, name) for name in names}
        return cls(path, here=own, began_ns=time.time_ns(), **more)

    def process(self, role, rank):
        """Begin the files of one more process."""
        target = {"role": role, "rank": rank, "world_size": 2, "replica": None, "coordinates": {}}
        self.event(
            "process", at=0, role=role, rank=rank, target=target, here=self.here,
            versions=self.versions,
        )  # fmt: skip
        clock = {"realtime_ns": self.began_ns, "monotonic_ns": 0, "bound_ns": 9}
        self.event("clock", at=0, role=role, rank=rank, **clock)

    def event(self, name, *, at=None, role="driver", rank=0, **fields):
        """Write a line of the manifest."""
        line = {"event": name, "mono": self.now if at is None else at, **fields}
        self._write("manifest", role, rank, line)

    def span(self, kind, name, start, end, step, *, role="driver", rank=0, **attributes):
        """Write a span; times are ns."""
        self._ids += 1
        line = {"kind": kind, "name": name, "t0": start, "t1": end, "step": step, "thread": 1}
        line |= {"id": self._ids, "attributes": attributes}
        self._write("spans", role, rank, line)

    def counters(self, target=None, **values):
        """Write what the counters of the driver, or of its engine *target*, are at."""
        line = {"mono": self.now, "values": values} | ({"target": target} if target else {})
        self._write("counters", "driver", 0, line)

    def phase(self, step, name, seconds, *, tokens=0):
        """Run a phase of the driver; one that has tokens holds a trajectory."""
        start, self.now = self.now, self.now + round(seconds * 1e9)
        if tokens:
            part = {"trajectory": f"{step}-0", "tokens": tokens}
            self.span("span", "request", start, self.now - 1000, step, **part)
            self.span("span", "trajectory", start, self.now - 1000, step, trajectory=f"{step}-0")
        self.span("phase", name, start, self.now, step)

    def step(self, step, phases, *, tokens=0):
        """Run a step; the first of its *phases* (seconds by name) has the tokens."""
        start = self.now
        for place, (name, seconds) in enumerate(phases.items()):
            self.phase(step, name, seconds, tokens=0 if place else tokens)
        self.span("step", f"step {step}", start, self.now, step)

    def end(self):
        """Close the run."""
        self.event("ended")

    def _write(self, folder, role, rank, line):
        with (self.path / folder / f"{role}-{rank}-node-a-1.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
