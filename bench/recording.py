"""What a captured window costs compared with bare torch.profiler, and how long the next step waits.

Both record the same work with the same options, in turn, in one process; bare means start, stop,
`export_chrome_trace` to a raw file, and freeing the events (130 ms per 300k), which bare otherwise
pays at a garbage collection in training. `.envs/test/bin/python bench/recording.py`
"""

from __future__ import annotations

import gc
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from _measure import machine, ratio, verdict

import rlprof
from rlprof_torch._options import is_unsafe

if TYPE_CHECKING:
    from collections.abc import Callable

ACTIVITIES = [torch.profiler.ProfilerActivity.CPU]


def training() -> Callable[[], None]:
    """Return a mini-batch loop of a small network: forward, backward, optimizer."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.randn(32, 64)

    def work() -> None:
        for _ in range(40):
            optimizer.zero_grad()
            model(data).square().mean().backward()
            optimizer.step()

    return work


def operators(count: int) -> Callable[[], None]:
    """Return a loop of *count* operators, nearly nothing else."""
    x = torch.ones(4)

    def work() -> None:
        for _ in range(count):
            torch.add(x, x)

    return work


def bare(work: Callable[[], None], file: Path, activities: list[Any]) -> tuple[float, float]:
    """Record *work* with bare torch.profiler; return CPU seconds, and wall seconds after it."""
    cpu = time.process_time()
    all_threads = not is_unsafe(torch.__version__)  # as ours
    config: Any = torch._C._profiler._ExperimentalConfig(profile_all_threads=all_threads)
    profile = torch.profiler.profile(activities=activities, experimental_config=config)
    profile.start()
    work()
    began = time.perf_counter()
    profile.stop()
    profile.export_chrome_trace(str(file))
    profile.profiler.kineto_results = None
    return time.process_time() - cpu, time.perf_counter() - began


def ours(work: Callable[[], None], prof: Any) -> tuple[float, float]:
    """Record *work* as a phase; return the same."""
    cpu = time.process_time()
    phase = prof.phase("update_actor")
    with phase:
        work()
        began = time.perf_counter()
    return time.process_time() - cpu, time.perf_counter() - began


def compare(
    name: str,
    work: Callable[[], None],
    pairs: int,
    *,
    cpu: float,
    wait: float,
    activities: list[Any] = ACTIVITIES,
) -> bool:
    """Run *pairs* of both in turn and print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "run_dir": folder,
            "scratch_dir": folder,
            "tool": "torch",
            "steps": {"every": 1},
            "roles": {"actor": {}},
            "tools": {"torch": {"contents": [one.name.lower() for one in activities]}},
        }
        costs = []
        prof: Any = rlprof.open(config)
        with prof:
            for step in range(pairs + 1):
                prof.step(step)
                # Before each, or one pays for the other's garbage.
                gc.collect()
                one = bare(work, Path(folder) / "bare.json", activities)
                gc.collect()
                two = ours(work, prof)
                if step:  # the first pair warms up
                    costs.append((two, one))
                # The helper process has the other core; let it end, for it is not measured here.
                while prof.scribe.jobs:
                    time.sleep(0.1)
                time.sleep(1.1)
            run_dir = prof.run_dir
        events = rlprof.read(run_dir).captures[-1].artifacts[0].events
    print(f"  {name}: {events:,} events, {pairs} pairs")
    for index, what in ((0, "CPU s of the window"), (1, "wall s the step waits")):
        us = statistics.median(pair[0][index] for pair in costs)
        them = statistics.median(pair[1][index] for pair in costs)
        print(f"    {what}: ours {us:.3f}, bare {them:.3f}")
    ratios = [ratio([p[0][i] for p in costs], [p[1][i] for p in costs]) for i in (0, 1)]
    return all(
        [
            verdict(f"{name}: CPU, ours / bare", ratios[0], cpu, ""),
            verdict(f"{name}: wait, ours / bare stop + raw export", ratios[1], wait, ""),
        ]
    )


def main() -> int:
    torch.set_num_threads(1)
    print(f"recording: {machine()}, torch {torch.__version__}")
    holds = [
        compare("training loop", training(), 9, cpu=1.05, wait=1.1),
        compare("300k operators", operators(300_000), 5, cpu=1.05, wait=1.1),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
