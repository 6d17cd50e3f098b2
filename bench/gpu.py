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
import os
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import torch
from _gpu_training import opened, training
from _gpu_truths import nsys, planted, truths
from _measure import machine, ratio, verdict
from recording import compare

import rlprof


def costs(folder: Path) -> list[bool]:
    """Compare a recorded window with a bare one, then a phase outside of windows with none."""
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


def memory(folder: Path) -> list[bool]:
    """Compare a step that the tool `torch_memory` records with one that it does not."""
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


PARTS = {
    "costs": costs, "same": same, "truths": truths, "planted": planted, "memory": memory,
    "nsys": nsys,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[one for one in PARTS if one != "nsys"])
    args = parser.parse_args()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # for `same`
    if not torch.cuda.is_available():
        raise SystemExit(f"gpu: torch {torch.__version__} sees no GPU here; use one that does")
    print(f"gpu: {torch.cuda.get_device_name()}; {machine()}, torch {torch.__version__}")
    kept = os.environ.get("RLPROF_BENCH_DIR")
    holds = []
    with tempfile.TemporaryDirectory() as folder:
        for part in args.parts:
            print(f"{part}:")
            holds += PARTS[part](Path(kept or folder) / part)
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
