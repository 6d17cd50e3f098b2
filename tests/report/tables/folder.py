"""A run of four ranks on two hosts: rank 2 and step 3 are slow, rank 0 is recorded in step 2."""

import gzip
import json
from pathlib import Path

from tests.report.folder import EPOCH_NS as EPOCH
from tests.report.folder import Folder

S = 10**9
BEHIND = {"node-a": 0, "node-b": 500 * S}
"""Offset of each host's monotonic clock from node-a's; their wall clocks agree."""
STEPS = {1: 2.0, 2: 2.0, 3: 5.0, 4: 2.0}
"""Step → seconds of its rollout."""
TRACE = "step_000002/update_actor/actor_0_of_4/torch/actor_rank0.pt.trace.json.gz"
WINDOW = {"start_step": 2, "end_step": 3, "phase": "update_actor", "occurrence": 0}


def make(path, *, odd_lines=(), trace=TRACE):
    """Write the run to *path* and return it; *odd_lines* go into the spans of rank 0."""
    path, run = Path(path), Folder({"tool": ["torch"], "steps": [2], "roles": {"actor": {}}})
    for rank in range(4):
        host = "node-a" if rank < 2 else "node-b"
        stem = run.process("actor", rank, world=4, host=host, behind_ns=BEHIND[host])
        _spans(run, stem, rank)
        if rank < 2:
            _capture(run, stem, rank, trace)
    run.write(path, until=100)
    with next((path / "spans").glob("actor-0-*")).open("a") as spans:
        spans.writelines(f"{line}\n" for line in odd_lines)
    (path / trace).parent.mkdir(parents=True)
    with gzip.open(path / trace, "wt") as file:
        json.dump(_trace(path.name), file)
    return path


def _spans(run, stem, rank):
    begin = 10.0
    for step, rollout in STEPS.items():
        at = begin
        update = 1.5 if rank == 2 and step > 1 else 1.0
        phases = {"rollout": rollout, "ref_log_prob": 0.5, "update_actor": update}
        for name, seconds in phases.items():
            run.span(stem, "phase", name, (at, at + seconds), step)
            at += seconds
        if rank == 0:
            _trajectories(run, stem, begin, step)
        end = begin + rollout + 2.0  # all wait for rank 2
        run.span(stem, "step", f"step {step}", (begin, end), step)
        begin = end


def _trajectories(run, stem, begin, step):
    """Add ten trajectories with one request each; the last is as long as the rollout."""
    for n in range(10):
        times = begin, begin + (STEPS[step] if n == 9 else 1.0 + n / 10)
        own = {"trajectory": f"{step}-{n}"}
        run.span(
            stem, "span", "request", times, step, parent=len(run.spans[stem]) + 2, **own,
            tokens=1000, prompt_tokens=100, replica=n % 2, queued_s=0.25, turn=0, finish="stop",
        )  # fmt: skip
        run.span(stem, "span", "trajectory", times, step, **own)


def _capture(run, stem, rank, trace):
    """Record update_actor of step 2 from 16.5 to 17.5 s; on rank 1 the export fails."""
    artifact = {"path": trace, "kind": "trace", "format": "chrome-trace", "events": 6, "size": 1234}
    times, made = (16.5, 16.6, 17.5), None if rank else artifact
    key = run.capture(stem, 2, "update_actor", times, stop_s=0.2, artifact=made)
    if rank:
        error = "CaptureError: the disk is full"
        run.event(stem, "failed", 18, **key, hook="export", error=error)


def _trace(name):
    """Make a trace of six events in update_actor of step 2."""
    target = {"role": "actor", "rank": 0, "world_size": 4, "replica": None, "coordinates": {}}
    about = {"run": name, "target": target, "window": WINDOW, "tool": "torch",
             "epoch_ns": EPOCH + 16 * S, "error_ns": 100}  # fmt: skip
    kernels = [("gemm", 6e5, 3e5), ("ncclDevKernel_AllReduce", 9e5, 1.5e5), ("gemm", 1.1e6, 1e5)]
    events = [
        {"ph": "X", "cat": "kernel", "name": kernel, "ts": ts + 0.125, "dur": dur, "pid": 0,
         "tid": 7, "args": {"stream": 7, "correlation": n, "grid": [1, 1, 1]}}
        for n, (kernel, ts, dur) in enumerate(kernels)
    ]  # fmt: skip
    events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 5.5e5, "dur": 20,
                   "pid": 4700, "tid": 4700})  # fmt: skip
    events.append({"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "x"}})
    events.append({"ph": "i", "cat": "cpu_op", "name": "[memory]", "ts": 6e5, "pid": 0, "tid": 0})
    return {"rlprof": about, "traceEvents": events}
