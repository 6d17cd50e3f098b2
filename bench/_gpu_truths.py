"""Whether the report's figures of a GPU are true; `gpu.py` runs this.

`nsys` starts this file as the program that is recorded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from _gpu_training import opened, training
from _measure import verdict

import rlprof
from rlprof_report import analyse

if TYPE_CHECKING:
    from collections.abc import Callable


def timed(work: Callable[[], None]) -> float:
    """Return the seconds that the device takes, by CUDA's own events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1e3


def truths(folder: Path) -> list[bool]:
    """Phases whose time on the device is known by other means, by the tool `torch`."""
    prof = opened(folder, contents=("cpu", "cuda", "memory"))
    took = record(prof)
    return judge(prof.run_dir, took, "torch")


def nsys(folder: Path) -> list[bool]:
    """The same by the tool `nsys`, in a process of its own."""
    config = {
        "run_dir": str(folder), "tool": "nsys", "steps": {"every": 1}, "roles": {"actor": {}},
        "tools": {"nsys": {"trace": ["nvtx", "cuda"], "nsys": os.environ["RLPROF_BENCH_NSYS"]}},
    }  # fmt: skip
    launch = rlprof.launch(config, role="actor", rank=0)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    program = [sys.executable, __file__, str(folder)]
    subprocess.run([*launch.argv_prefix, *program], env=os.environ | launch.env, check=True)
    (run_dir,) = (one for one in folder.iterdir() if one.is_dir())
    for one in rlprof.read(run_dir).captures[-2:]:
        print(f"  {one.window.id} {one.state} start {one.start_s} stop {one.stop_s} {one.notes}")
    return judge(run_dir, json.loads((folder / "took.json").read_text()), "nsys")


def record(prof: Any) -> dict[str, float]:
    """Record three steps of phases; return how long the device takes for each, and its memory."""
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    small = torch.randn(64, 64, device="cuda")
    host = torch.empty(256 << 20, dtype=torch.uint8, pin_memory=True)
    target = torch.empty_like(host, device="cuda")
    _, step = training(1)
    step()  # and whatever is made once

    def multiply() -> None:
        for _ in range(100):
            x @ x

    def copy() -> None:
        for _ in range(10):
            target.copy_(host, non_blocking=True)

    def sleep() -> None:
        for _ in range(5):
            x @ x
            torch.cuda.synchronize()
            time.sleep(0.04)

    def tiny() -> None:
        y = small
        for _ in range(5000):
            y = y + small

    graph = torch.cuda.CUDAGraph()
    multiply()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        y = small
        for _ in range(100):
            y = y + small

    def replay() -> None:
        for _ in range(20):
            graph.replay()

    works = {"multiply": multiply, "copy": copy, "sleep": sleep, "tiny": tiny, "replay": replay,
             "train": step}  # fmt: skip
    took = {}
    with prof:
        for number in range(3):
            prof.step(number)
            for name, work in works.items():
                torch.cuda.reset_peak_memory_stats()
                with prof.phase(name):
                    took[name] = timed(work)
                took[f"{name} peak"] = torch.cuda.max_memory_allocated()
    return took


def judge(run_dir: Path, took: dict[str, float], tool: str) -> list[bool]:
    """Compare what the report says of the last step with what was measured."""
    print(f"  {run_dir}")
    run = rlprof.read(run_dir)
    states = {(one.state, one.notes) for one in run.captures}
    print(f"  {len(run.captures)} captures: {states}")
    analysis = analyse(run)
    assert analysis.device is not None
    found = {one.window.partition("/")[2]: one for one in analysis.device.captures
             if one.window.startswith("2/")}  # fmt: skip
    for one in analysis.findings:
        print(f"  {one.cause}: {one.title}")

    def off(seconds: float, name: str) -> float:
        return abs(seconds / took[name] - 1)

    def of_torch() -> list[bool]:
        replay, peaks = found["replay"].graph_kernels, found["train"].memory
        peak = max(one.allocated_bytes for one in peaks if one.device.startswith("cuda"))
        return [
            verdict("20 replays of a graph of 100 kernels: missing", 2000 - replay, 0, ""),
            verdict("train: peak memory, off torch's own by", off(peak, "train peak"), 0.0, ""),
        ]

    multiply, copy, tiny, train = (
        found[name].temporal for name in ("multiply", "copy", "tiny", "train")
    )
    assert multiply
    assert copy
    assert tiny
    assert train
    idle, waits = found["sleep"].idle, found["tiny"].idle
    assert idle
    assert waits
    bound, idle_share = waits.launch_bound_s / tiny.window_s, train.idle_s / train.window_s
    print(f"  tiny: launch-bound {bound:.0%} of {tiny.window_s:.4f} s, gaps below 10 us take")
    print(f"    {waits.short_s:.4f} s; train: idle {idle_share:.0%}")
    return [
        verdict("products: compute, off CUDA's events by", off(multiply.compute_s, "multiply"),
                0.03, ""),
        verdict("copies: exposed copies, off CUDA's events by", off(copy.exposed_copy_s, "copy"),
                0.03, ""),
        verdict("four sleeps of 40 ms between kernels: launch-bound, off 0.16 s by",
                abs(idle.launch_bound_s / 0.16 - 1), 0.05, ""),
        verdict("train: window, off CUDA's events by", off(train.window_s, "train"), 0.05, ""),
        *(of_torch() if tool == "torch" else ()),
    ]  # fmt: skip


def planted(folder: Path) -> list[bool]:
    """A host that launches 3,000 small kernels one by one, and a CUDA graph that holds them."""
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    small = torch.randn(64, 64, device="cuda")

    def kernels() -> None:
        y = small
        for _ in range(3000):
            y = y + small

    kernels()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernels()
    found = []
    for launch in (kernels, graph.replay):
        prof = opened(folder, steps=[8])
        with prof:
            for step in range(80):
                prof.step(step)
                with prof.phase("update_actor"):
                    launch()
                    for _ in range(20):
                        x @ x
                    torch.cuda.synchronize()
        found.append(analyse(rlprof.read(prof.run_dir)))
    slow, fast = found
    print(f"  {slow.verdict}")
    print(f"  {fast.verdict}")
    assert slow.clean.median_s
    assert fast.clean.median_s
    gain, bound = slow.clean.median_s - fast.clean.median_s, slow.findings[0].bound_s
    print(f"  gain {gain * 1e3:.2f} ms, bound {bound * 1e3:.2f} ms")
    return [
        verdict("bound of the first finding, over the gain of a graph", bound / gain, 2, ""),
        verdict("gain of a graph, over the bound", gain / bound, 1, ""),
        verdict("findings with the graph", len(fast.findings), 0, ""),
    ]


def under_nsys(folder: Path) -> None:
    """Record what the config in *folder* says, and write there what it took."""
    config = json.loads((folder / "config.json").read_text())
    took = record(rlprof.open(config, role="actor", rank=0))
    (folder / "took.json").write_text(json.dumps(took))


if __name__ == "__main__":
    under_nsys(Path(sys.argv[1]))
