"""Recording on an NVIDIA GPU: what it costs, whether it changes training, whether figures are true.

`python bench/gpu.py [PART ...]` with a torch that sees a GPU; all parts but `nsys` by default:

- `costs`: the training of a small transformer, by the tool `torch` and by bare torch.profiler.
- `same`: its weights, recorded and not.
- `truths`: the report's figures, CUDA's own events and torch's own counters.
- `planted`: what `rlprof why` says of a host that is too slow, and what a CUDA graph gains.
- `memory`: the tool `torch_memory`.
- `nsys`: the same as `truths`, by the program that RLPROF_BENCH_NSYS names.

RLPROF_BENCH_DIR keeps the runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from _measure import machine, ratio, verdict
from recording import compare

import rlprof
from rlprof_report import analyse

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PARTS = ["costs", "same", "truths", "planted", "memory"]
WIDTH, LAYERS, LENGTH, BATCH = (1024, 12, 512, 16) if DEVICE == "cuda" else (64, 2, 32, 2)


def sync() -> None:
    """Wait for the device."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def training(micro_batches: int = 4) -> tuple[torch.nn.Module, Callable[[], None]]:
    """Return a transformer, and a step: forward and backward in bfloat16, AdamW."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        WIDTH, WIDTH // 64, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
    )
    model = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = torch.randn(BATCH, LENGTH, WIDTH).to(DEVICE)

    def work() -> None:
        for _ in range(micro_batches):
            optimizer.zero_grad()
            with torch.autocast(DEVICE, torch.bfloat16):
                loss = model(data).square().mean()
            loss.backward()
            optimizer.step()
        sync()

    return model, work


def opened(folder: Path, tool: str = "torch", contents: tuple[str, ...] = (), **more: Any) -> Any:
    """Open a session that records every phase of every step."""
    config = {
        "run_dir": str(folder), "tool": tool, "steps": {"every": 1}, "roles": {"actor": {}},
        "tools": {"torch": {"contents": contents or ("cpu", "cuda")}} if tool == "torch" else {},
    } | more  # fmt: skip
    return rlprof.open(config)


def costs(folder: Path) -> list[bool]:
    """A recorded window beside a bare one, then a phase outside of windows beside none."""
    _, work = training()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    both = compare("transformer", work, 9, cpu=1.05, wait=1.1, activities=activities)
    prof = opened(folder, steps=[10**6])
    pairs = []
    with prof:
        for step in range(31):
            prof.step(step)
            pair = [0.0, 0.0]
            for is_plain in (True, False) if step % 2 else (False, True):  # the first is colder
                began = time.perf_counter()
                with nullcontext() if is_plain else prof.phase("update_actor"):
                    work()
                pair[is_plain] = time.perf_counter() - began
            pairs.append(pair)
    ours, plain = zip(*pairs[1:], strict=True)
    print(f"  a step takes {statistics.median(plain) * 1e3:.1f} ms")
    return [both, verdict("a step outside of windows, over one without rlprof",
                          ratio(ours, plain), 1.01, "")]  # fmt: skip


def same(folder: Path) -> list[bool]:
    """Weights after ten recorded steps, and after ten that were not."""
    torch.use_deterministic_algorithms(True)
    found = []
    for is_recorded in (False, True):
        model, work = training(1)
        prof = opened(folder, contents=("cpu", "cuda", "memory", "shapes")) if is_recorded else None
        for step in range(10):
            if prof is None:
                work()
                continue
            prof.step(step)
            with prof.phase("update_actor"):
                work()
        if prof is not None:
            prof.close()
            states = {one.state for one in rlprof.read(prof.run_dir).captures}
            assert states == {"whole"}, states
        found.append([weights.detach().clone() for weights in model.parameters()])
    torch.use_deterministic_algorithms(False)
    unequal = sum(not torch.equal(*pair) for pair in zip(*found, strict=True))
    return [verdict(f"of {len(found[0])} weights, unequal after 10 recorded steps", unequal, 0, "")]


def timed(work: Callable[[], None]) -> float:
    """Return the seconds that the device takes, by CUDA's own events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    sync()
    begin.record()
    work()
    end.record()
    sync()
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
    program = [sys.executable, __file__, "--under-nsys", str(folder)]
    subprocess.run([*launch.argv_prefix, *program], env=os.environ | launch.env, check=True)
    (run_dir,) = (one for one in folder.iterdir() if one.is_dir())
    for one in rlprof.read(run_dir).captures[-2:]:
        print(f"  {one.window.id} {one.state} start {one.start_s} stop {one.stop_s} {one.notes}")
    return judge(run_dir, json.loads((folder / "took.json").read_text()), "nsys")


def record(prof: Any) -> dict[str, float]:
    """Record three steps of phases; return how long the device takes for each, and its memory."""
    x = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    small = torch.randn(64, 64, device=DEVICE)
    host = torch.empty(256 << 20, dtype=torch.uint8, pin_memory=True)
    target = torch.empty_like(host, device=DEVICE)
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
            sync()
            time.sleep(0.04)

    def tiny() -> None:
        y = small
        for _ in range(5000):
            y = y + small

    graph = torch.cuda.CUDAGraph()
    multiply()
    sync()
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
    x = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    small = torch.randn(64, 64, device=DEVICE)

    def kernels() -> None:
        y = small
        for _ in range(3000):
            y = y + small

    kernels()
    sync()
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
                    sync()
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


def memory(folder: Path) -> list[bool]:
    """The tool `torch_memory`, beside a step without it."""
    _, work = training()
    work()
    prof = opened(folder, "torch_memory", steps={"every": 2, "first": 1})
    pairs = []
    with prof:
        for step in range(20):
            prof.step(step)
            began = time.perf_counter()
            with prof.phase("update_actor"):
                work()
            pairs.append(time.perf_counter() - began)
    run = rlprof.read(prof.run_dir)
    states = {one.state for one in run.captures}
    assert states == {"whole"}, [one.notes for one in run.captures]
    sizes = [one.artifacts[0].size for one in run.captures]
    print(f"  {len(sizes)} snapshots of {statistics.median(sizes) / 1e6:.1f} MB")
    plain, recorded = pairs[2::2], pairs[3::2]
    return [verdict("a step with its memory recorded and written, over one without",
                    ratio(recorded, plain), 10, "")]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", default=["costs", "same", "truths", "planted", "memory"]
    )
    parser.add_argument("--under-nsys", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.under_nsys:
        config = json.loads((args.under_nsys / "config.json").read_text())
        took = record(rlprof.open(config, role="actor", rank=0))
        (args.under_nsys / "took.json").write_text(json.dumps(took))
        return 0
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # for `same`
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else "no GPU"
    print(f"gpu: {device}; {machine()}, torch {torch.__version__}")
    kept = os.environ.get("RLPROF_BENCH_DIR")
    holds = []
    with tempfile.TemporaryDirectory() as folder:
        for part in args.parts:
            print(f"{part}:")
            holds += globals()[part](Path(kept or folder) / part)
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
