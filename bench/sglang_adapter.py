"""What recording an SGLang replica costs: how long generation stands still, each step, memory.

`.envs/sglang/bin/python bench/sglang_adapter.py [ROUNDS]`

One TokenizerManager on the CPU with four streaming requests in flight; 200 forward steps are
recorded in turn by bare torch.profiler in the scheduler (its stop and raw JSON), by rlprof in the
scheduler, by SGLang's own profiler without stacks and shapes, and by rlprof through it. All
record operators alone. At the end SGLang's own merge on top of that, and its defaults.

Before it, twenty windows by rlprof in the scheduler, and the scheduler's resident memory after
each: the first few make what is kept for the next, and from the fifth to the last it may grow by
10 MB, about a hundredth of all it has.

The stall of rlprof in the scheduler may be 1.3 times the bare one's. What runs is a process of its
own: SGLang ends the one that holds an engine whose scheduler fails.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _costs import REQUESTS, STEPS, Cost, beside_bare, middle, recorded, table
from _measure import machine, verdict
from _sglang_ways import Bare, Engine, Theirs
from _stood_in import run
from _ways import Ours

import rlprof

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _ways import Way

_MINE = "rlprof, worker"
_TUNED = {"activities": ["CPU"], "with_stack": False, "record_shapes": False}
_WINDOWS = 20
_LOOKED_AT = (0, 1, 5, 10, 15, 20)
_WARM = 5
_PLUGIN = {
    "METADATA": "Metadata-Version: 2.1\nName: rlprof-bench\nVersion: 1\n",
    "entry_points.txt": "[sglang.srt.plugins]\nrlprof-bench = _in_scheduler:install\n",
}


def config(home: Path) -> dict[str, Any]:
    """Return a config with both ways to record the same engine, each in a phase of its own."""
    return {
        "run_dir": f"{home}/runs", "scratch_dir": f"{home}/scratch", "tool": "torch",
        "tools": {"torch": {"contents": ["cpu"]}}, "steps": {"every": 1},
        "roles": {
            "worker": {"engine": "sglang", "phases": ["worker"]},
            "native": {"engine": "sglang_native", "phases": ["native"]},
        },
        "engines": {
            "sglang": {"way": "worker"},
            "sglang_native": {"way": "native", "profiler_dir": f"{home}/native"},
        },
    }  # fmt: skip


async def measured(manager: Any, home: Path, rounds: int) -> tuple[list[float], Any]:
    """Record in turn, after windows that warm up; what takes long comes each third round."""
    costs: dict[str, list[Cost]] = {}
    engine, folder = Engine(manager, home), home / "theirs"
    with rlprof.open(config(home), role="driver") as prof:
        for role in ("worker", "native"):
            prof.attach(manager, role=role, replica=0, ranks=[0])
        mine = Ours(prof, "worker")
        grown = await memory(manager, engine, mine)
        quick: dict[str, Way] = {"bare": Bare(manager, home), _MINE: mine}
        slow: dict[str, Way] = {"SGLang tuned": Theirs(manager, folder, **_TUNED),
                                "rlprof, native": Ours(prof, "native")}  # fmt: skip
        for turn in range(rounds + 1):
            ways = quick if not turn or turn % 3 else quick | slow
            for name, way in ways.items():
                cost = await recorded(engine, way, f"{name} {turn}")
                if turn:
                    costs.setdefault(name, []).append(cost)
    last = {"SGLang tuned, and merges": {**_TUNED, "merge_profiles": True}, "SGLang default": {}}
    for name, asked in last.items():
        costs[name] = [await recorded(engine, Theirs(manager, folder, **asked), name)]
    return grown, costs


async def memory(manager: Any, engine: Engine, way: Way) -> list[float]:
    """Return the scheduler's resident memory before some windows and after each, in MB."""
    (state,) = await manager.get_internal_state()
    found = [resident(state["rlprof"]["pid"])]
    for window in range(_WINDOWS):
        await recorded(engine, way, f"window {window}")
        found.append(resident(state["rlprof"]["pid"]))
    return found


def resident(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def remembered(grown: Sequence[float]) -> bool:
    """Print the scheduler's memory; return whether it keeps to its limit."""
    grew = ", ".join(f"{grown[window]:.1f} ({window})" for window in _LOOKED_AT)
    print(f"  the scheduler's resident memory in MB (after N windows): {grew}")
    late = grown[_WARM:]
    print(f"  its slope from the fifth on: {_slope(late) * 1000:.0f} kB a window")
    return verdict("memory more after 20 windows than after 5", late[-1] - late[0], 10, "MB")


def _slope(values: Sequence[float]) -> float:
    """Return the slope of the line with the least squares through *values*."""
    middle = (len(values) - 1) / 2
    spread = sum((at - middle) ** 2 for at in range(len(values)))
    return sum((at - middle) * value for at, value in enumerate(values)) / spread


async def main(rounds: int) -> int:
    import sglang
    import torch

    from rlprof_sglang import Sglang

    drive: Any = importlib.import_module("tests.sglang_real.drive")
    home = Path(drive.ARGUMENTS["home"])
    print(
        f"sglang: {machine()}, SGLang {sglang.__version__}, torch {torch.__version__}", flush=True
    )
    logging.getLogger("rlprof").setLevel(logging.ERROR)  # a step has one of the two phases
    rlprof.register("engine", "sglang_native", Sglang)
    launch = rlprof.launch(config(home), role="worker", ranks=[0])
    with drive.tokenizer_manager(launch) as manager:
        grown, costs = await measured(manager, home, rounds)
    print(f"  {STEPS} forward steps, {REQUESTS} requests in flight, {rounds} rounds")
    table(costs)
    stall, around = beside_bare(costs, _MINE)
    print(f"  the range that names a forward step: {around:.0f} us of CPU more than a bare one")
    mine, bare = (middle(costs[name]).events for name in (_MINE, "bare"))
    holds = [
        verdict("stall at stop, rlprof in the scheduler / bare", stall, 1.3, ""),
        verdict("events that one has and the other has not", abs(mine / bare - 1) * 100, 2, "%"),
        remembered(grown),
    ]
    return 0 if all(holds) else 1


def born(home: Path, rounds: str) -> int:
    """Run it where SGLang loads the watch into its schedulers."""
    info = home / "plugin/rlprof_bench-1.dist-info"
    info.mkdir(parents=True)
    for name, text in _PLUGIN.items():
        (info / name).write_text(text, encoding="utf-8")
    return run(__file__, home, rounds, "here", more=[info.parent, Path(__file__).parent])


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "9"
    if "here" in sys.argv:
        sys.exit(asyncio.run(main(int(chosen))))
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(born(Path(folder), chosen))
