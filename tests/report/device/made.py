"""Traces and runs with windows, made of a few events whose figures are known."""

from __future__ import annotations

import gzip
import json

import rlprof
from tests.report.written_runs import BEGAN_NS, WrittenRun

SECOND = 1_000_000_000
EPOCH_NS = BEGAN_NS + SECOND
"""The time of `ts` 0."""


def kernel(name, at, length, *, launch=None, cat="kernel", **args):
    """Return a device event, times in us, and the call that launched it."""
    args = {"stream": 7, **args}
    if launch is None:
        return [{"ph": "X", "cat": cat, "name": name, "ts": at, "dur": length, "args": args}]
    args["correlation"] = args.get("correlation", round(at * 10))
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": launch, "dur": 1}
    return [
        {"ph": "X", "cat": cat, "name": name, "ts": at, "dur": length, "args": args},
        {**call, "args": {"correlation": args["correlation"]}},
    ]


def operator(name, at, length, thread=1):
    """Return a host operator, times in us."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "ts": at, "dur": length, "tid": thread}


def text_of(events, **head):
    """Encode a trace."""
    head = {"rlprof": {"epoch_ns": EPOCH_NS}, **head}
    return json.dumps({**head, "traceEvents": events}).encode()


def trace(path, *events, **head):
    """Write a trace of single events and lists of them."""
    flat = [one for event in events for one in (event if isinstance(event, list) else [event])]
    path.write_bytes(text_of(flat, **head))
    return path


class Windows:
    """A run in which ranks have recorded windows of one second each."""

    def __init__(self, path) -> None:
        self._run = WrittenRun(path)
        self._known = {("driver", 0)}
        self._artifacts = 0
        self.path = path

    def add(self, content, *, role="actor", rank=0, step=1, replica=None, name="trace.json.gz"):
        """Record a window from `ts` 0 to one second later, whose trace is *content*."""
        if (role, rank) not in self._known:
            self._known.add((role, rank))
            self._run.process(role, rank)
        self._artifacts += 1
        file = f"{self._artifacts}_{name}"
        if content is not None:
            packed = gzip.compress(content) if isinstance(content, bytes) else content.read_bytes()
            (self.path / file).write_bytes(packed)
        window = {"start_step": step, "end_step": step + 1, "phase": "update", "occurrence": 0}
        key = {"window": window, "tool": "torch", "role": role, "rank": rank}
        if replica is not None:
            key["target"] = {"role": role, "rank": rank, "world_size": 1, "replica": replica}
        artifact = {"path": file, "kind": "trace", "format": "chrome-trace", "size": 1000}
        event = self._run.event
        event("opened", at=SECOND, **key, scratch="", asked={})
        event("closed", at=2 * SECOND + SECOND // 2, **key, reason="end", seconds=0.5)
        event("artifact", at=3 * SECOND, **key, artifact=artifact)
        event("exported", at=3 * SECOND, **key, seconds=0.0)
        return file

    def read(self):
        """Read the run."""
        return rlprof.read(self.path)
