"""A run folder made by hand, small enough to know every answer: four ranks on two hosts.

Rank 2 is slow in `update_actor` of steps 2 to 4; step 3 has a long rollout; of step 2, rank 0 is
recorded and rank 1 is not.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

EPOCH = 1_795_440_000_000_000_000
S = 10**9
BEHIND = {"node-a": 0, "node-b": 500 * S}
"""How far each host's monotonic clock is from that of node-a; their wall clocks agree."""
STEPS = {1: 2.0, 2: 2.0, 3: 5.0, 4: 2.0}
"""How long each rollout takes."""
TRACE = "step_000002/update_actor/actor_0_of_4/torch/actor_rank0.pt.trace.json.gz"
WINDOW = {"start_step": 2, "end_step": 3, "phase": "update_actor", "occurrence": 0}


def make(path, *, odd_lines=(), trace=TRACE):
    """Write the run to *path* and return it; *odd_lines* go into the spans of rank 0."""
    path = Path(path)
    for folder in ("manifest", "spans"):
        (path / folder).mkdir(parents=True)
    (path / "run.json").write_text(json.dumps(_header(path.name)))
    for rank in range(4):
        host = "node-a" if rank < 2 else "node-b"
        stem = f"actor-{rank}-{host}-{4700 + rank}"
        spans = [line for one in _spans(rank) for line in [_on(one, BEHIND[host])]]
        texts = [json.dumps(line) for line in spans] + (list(odd_lines) if rank == 0 else [])
        (path / "spans" / f"{stem}.jsonl").write_text("".join(f"{text}\n" for text in texts))
        lines = [json.dumps(line) for line in _manifest(rank, host, trace)]
        (path / "manifest" / f"{stem}.jsonl").write_text("".join(f"{one}\n" for one in lines))
    (path / trace).parent.mkdir(parents=True)
    with gzip.open(path / trace, "wt") as file:
        json.dump(_trace(path.name), file)
    return path


def _header(name):
    process = {"host": "node-a", "boot_id": "a", "pid_namespace": "n", "pid": 4700, "started": "1"}
    owner = {"run_id": name, "attempt": 1, "key": "k", "restart": "0.0", "role": "actor",
             "rank": 0, "opened_ns": EPOCH, "process": process}  # fmt: skip
    return {"run_id": name, "owner": owner, "rlprof": "0.1.0", "expected": {},
            "config": {"tool": ["torch"], "steps": [2], "roles": {"actor": {}}}}  # fmt: skip


def _spans(rank):
    """Give the spans of a rank: seconds after `EPOCH`."""
    number, begin = 0, 10.0
    for step, rollout in STEPS.items():
        phases = {"rollout": rollout, "ref_log_prob": 0.5, "update_actor": 1.0}
        if rank == 2 and step > 1:
            phases["update_actor"] = 1.5
        at = begin
        for name, seconds in phases.items():
            number += 1
            yield _span("phase", name, (at, at + seconds), step, number=number)
            at += seconds
        if rank == 0:
            for one in _trajectories(begin, rollout, step, number):
                yield one
                number = one["id"]
        number += 1
        end = begin + rollout + 2.0  # all wait for rank 2
        yield _span("step", f"step {step}", (begin, end), step, number=number)
        begin = end


def _trajectories(begin, rollout, step, number):
    """Give ten trajectories with a request each; the last one is as long as the rollout."""
    for n in range(10):
        end = begin + (rollout if n == 9 else 1.0 + n / 10)
        own = {"trajectory": f"{step}-{n}"}
        said = {**own, "tokens": 1000, "prompt_tokens": 100, "replica": n % 2, "queued_s": 0.25,
                "turn": 0, "finish": "stop"}  # fmt: skip
        yield _span("span", "request", (begin, end), step, number=number + 1, parent=number + 2,
                    attributes=said)  # fmt: skip
        yield _span("span", "trajectory", (begin, end), step, number=number + 2, attributes=own)
        number += 2


def _span(kind, name, when, step, *, number, parent=None, attributes=None):
    begin, end = when
    record = {"kind": kind, "name": name, "t0": round(begin * S), "t1": round(end * S),
              "step": step, "thread": 1, "id": number}  # fmt: skip
    if parent:
        record["parent"] = parent
    if attributes:
        record["attributes"] = attributes
    return record


def _on(record, behind):
    return record | {"t0": record["t0"] - behind, "t1": record["t1"] - behind}


def _manifest(rank, host, trace):
    behind = BEHIND[host]
    target = {"role": "actor", "rank": rank, "world_size": 4, "replica": None, "coordinates": {}}
    here = {"host": host, "boot_id": host, "pid_namespace": "n", "pid": 4700 + rank,
            "started": "1"}  # fmt: skip
    yield {"event": "process", "mono": 1 - behind, "target": target, "here": here, "versions": {}}
    for at in (0, 100 * S):
        yield {"event": "clock", "mono": at - behind, "realtime_ns": EPOCH + at,
               "monotonic_ns": at - behind, "bound_ns": 100 + rank}  # fmt: skip
    capture = {"window": WINDOW, "tool": "torch"}
    if rank < 2:
        yield {"event": "opened", "mono": round(16.5 * S), **capture, "scratch": "", "asked": {}}
        yield {"event": "started", "mono": round(16.6 * S), **capture, "seconds": 0.1,
               "applied": {}, "unsupported": {}}  # fmt: skip
        yield {"event": "closed", "mono": round(17.5 * S), **capture, "seconds": 0.2,
               "reason": "end", "late": ""}  # fmt: skip
    if rank == 0:
        artifact = {"path": trace, "kind": "trace", "format": "chrome-trace", "status": "whole",
                    "note": "", "events": 6, "size": 1234, "sha256": ""}  # fmt: skip
        yield {"event": "artifact", "mono": 18 * S, **capture, "artifact": artifact}
        yield {"event": "exported", "mono": 18 * S, **capture, "seconds": 0.5}
    if rank == 1:
        yield {"event": "failed", "mono": 18 * S, **capture, "hook": "export",
               "error": "CaptureError: the disk is full"}  # fmt: skip
    yield {"event": "ended", "mono": 90 * S - behind}


def _trace(name):
    """Record six events in update_actor of step 2: 16.5 to 17.5 s."""
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
