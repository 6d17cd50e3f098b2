"""Traces, and runs with windows, of a few events whose figures are known."""

import gzip
import json

import rlprof
from tests.report.folder import EPOCH_NS as BEGAN_NS
from tests.report.folder import Folder

SECOND = 1_000_000_000
EPOCH_NS = BEGAN_NS + SECOND
"""The time of `ts` 0."""


def kernel(name, at, length, *, launch=None, cat="kernel", **args):
    """Return a device event, times in us, and the call that launched it."""
    args = {"stream": 7, **args}
    event = {"ph": "X", "cat": cat, "name": name, "ts": at, "dur": length, "args": args}
    if launch is None:
        return [event]
    args["correlation"] = args.get("correlation", round(at * 10))
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": launch, "dur": 1}
    return [event, {**call, "args": {"correlation": args["correlation"]}}]


def operator(name, at, length, thread=1):
    return {"ph": "X", "cat": "cpu_op", "name": name, "ts": at, "dur": length, "tid": thread}


def text_of(events, **head):
    head = {"rlprof": {"epoch_ns": EPOCH_NS}, **head}
    return json.dumps({**head, "traceEvents": events}).encode()


def trace(path, *events, **head):
    flat = [one for event in events for one in (event if isinstance(event, list) else [event])]
    path.write_bytes(text_of(flat, **head))
    return path


class Windows:
    """A run whose ranks recorded windows of one second each."""

    def __init__(self, path) -> None:
        self.path, self._run = path, Folder()
        self._run.process("driver", 0)
        self._stems, self._artifacts = {}, 0

    def add(
        self, content, *, role="actor", rank=0, step=1, phase="update", replica=None, name="",
        host="node",
    ):  # fmt: skip
        """Record a window from `ts` 0 to one second later whose trace is *content*."""
        if (role, rank) not in self._stems:
            self._stems[role, rank] = self._run.process(role, rank, world=2, host=host)
        self._artifacts += 1
        file = f"{self._artifacts}_{name}"
        if content is not None:
            packed = gzip.compress(content) if isinstance(content, bytes) else content.read_bytes()
            (self.path / file).parent.mkdir(exist_ok=True)
            (self.path / file).write_bytes(packed)
        whose = {"role": role, "rank": rank, "world_size": 1, "replica": replica}
        more = {} if replica is None else {"target": whose}
        artifact = {"path": file, "kind": "trace", "format": "chrome-trace", "size": 1000}
        stem = self._stems[role, rank]
        self._run.capture(stem, step, phase, (1, 1, 2.5), artifact=artifact, **more)
        return file

    def read(self):
        return rlprof.read(self._run.write(self.path, until=4))
