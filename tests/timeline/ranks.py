"""Describes a run of two ranks on two hosts, with the traces that Kineto leaves of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.types import Window
from tests.timeline.builder import NOW
from tests.timeline.layouts import one_line, us

if TYPE_CHECKING:
    from tests.timeline.builder import RunBuilder

ROLLOUT = Window(2, 3, "rollout")
UPDATE = Window(2, 3, "update_actor")
QUARTER = 7_776_000_000_000_000  # ns: Kineto lets ts start anew every three months


def _kineto(mark: str, at_ns: int, base_ns: int) -> list[Any]:
    """Make a trace like Kineto's, *at_ns* into the run: equal pids, tids and flow ids in each."""
    start = NOW + at_ns - base_ns
    meta = {"ph": "M", "ts": us(start), "tid": 0}
    cpu = {"pid": 4000, "tid": 4001}
    gpu = {"pid": 0, "tid": 7}
    flow = {"cat": "ac2g", "name": "ac2g", "id": 5}
    events: list[dict[str, Any]] = [
        meta | {"name": "process_name", "pid": 4000, "args": {"name": "python3"}},
        meta | {"name": "process_labels", "pid": 4000, "args": {"labels": "CPU"}},
        meta | {"name": "process_sort_index", "pid": 4000, "args": {"sort_index": 4000}},
        meta | {"name": "process_name", "pid": 0, "args": {"name": "python3"}},
        meta | {"name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}},
        meta | {"name": "process_sort_index", "pid": 0, "args": {"sort_index": 5000000}},
        meta | {"name": "process_name", "pid": 1, "args": {"name": "an idle GPU"}},
        meta | {"name": "process_sort_index", "pid": "Spans", "args": {"sort_index": 536870912}},
        meta | cpu | {"name": "thread_name", "args": {"name": "thread 4001 (python3)"}},
        meta | gpu | {"name": "thread_name", "args": {"name": "stream 7"}},
        {"ph": "X", "name": f"kernel {mark}", **gpu, "ts": start + 20_999, "dur": 9_999},
        {"ph": "X", "name": f"op {mark}", **cpu, "ts": start, "dur": 50_001, "args": {"Ev": 1}},
        {"ph": "X", "name": f"launch {mark}", **cpu, "ts": start + 10_007, "dur": 2_003},
        {"ph": "s", **flow, **cpu, "ts": start + 10_007},
        {"ph": "f", **flow, **gpu, "ts": start + 20_999, "bp": "e"},
        {"ph": "X", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "Torch", "ts": start},
        {"ph": "i", "s": "g", "name": f"mark {mark}", **cpu, "ts": start + 60_001},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": start},
    ]
    return [one_line(event) for event in events]


def two_ranks(run: RunBuilder) -> None:
    """Two ranks on two hosts, two windows each, every trace with a base of its own."""
    for rank in (0, 1):
        process = run.process(rank=rank, host=f"node-{'ab'[rank]}")
        step = process.span("step", "step 2", NOW, NOW + 900_000, step=2)
        for n, window in enumerate((ROLLOUT, UPDATE)):
            at = n * 300_000 + rank * 1_001
            process.span(
                "phase", window.phase, NOW + at, NOW + at + 100_003, step=2, parent=step, tokens=7
            )
            base = (NOW // QUARTER - n - rank) * QUARTER + rank
            process.trace(window, _kineto(f"{rank}.{n}", at, base), base)
