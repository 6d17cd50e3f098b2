"""What recording a vLLM replica costs: how long generation stands still at stop, and each step.

`.envs/vllm/bin/python bench/vllm_adapter.py [ROUNDS]`

One AsyncLLM on the CPU with four requests in flight; 200 engine steps are recorded in turn by
bare torch.profiler in the worker (its stop and raw JSON), by rlprof in the worker, by vLLM's own
profiler as tuned as it goes, and by rlprof through it. All record operators alone. At the end
vLLM's defaults, without and with the stacks that are one of them: the engine is the same, and its
worker is given other options (its frontend, recorded by default as well, is left out).
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _costs import REQUESTS, STEPS, Cost, beside_bare, recorded, table
from _measure import machine, verdict
from _vllm_ways import Bare, Engine, Theirs
from _ways import Ours

sys.path.append(str(Path(__file__).parent.parent))
import rlprof
from rlprof_vllm import Vllm

if TYPE_CHECKING:
    from _ways import Way

_TINY: Any = importlib.import_module("tests.vllm_real.tiny")
_MINE = "rlprof, worker"
_TABLE = {"torch_profiler_use_gzip": True, "torch_profiler_dump_cuda_time_total": True}


def config(home: str) -> dict[str, Any]:
    """Return a config with both ways to record the same engine, each in a phase of its own."""
    return {
        "run_dir": f"{home}/runs", "scratch_dir": f"{home}/scratch", "tool": "torch",
        "tools": {"torch": {"contents": ["cpu"]}}, "steps": {"every": 1},
        "roles": {
            "worker": {"engine": "vllm", "phases": ["worker"]},
            "native": {"engine": "vllm_native", "phases": ["native"]},
        },
        "engines": {
            "vllm": {"way": "worker"},
            "vllm_native": {"way": "native", "profiler_dir": f"{home}/native"},
        },
    }  # fmt: skip


async def measured(engine: Any, home: str, rounds: int) -> dict[str, list[Cost]]:
    """Record in turn, after a round that warms up; what takes long comes each third round."""
    costs: dict[str, list[Cost]] = {}
    with rlprof.open(config(home), role="driver") as prof:
        for role in ("worker", "native"):
            prof.attach(engine, role=role)
        quick: dict[str, Way] = {"bare": Bare(engine, Path(home)), _MINE: Ours(prof, "worker")}
        slow: dict[str, Way] = {"vLLM tuned": Theirs(engine),
                                "rlprof, native": Ours(prof, "native")}  # fmt: skip
        for turn in range(rounds + 1):
            ways = quick if not turn or turn % 3 else quick | slow
            for name, way in ways.items():
                cost = await recorded(Engine(engine), way, f"{name} {turn}")
                if turn:
                    costs.setdefault(name, []).append(cost)
    for name, stack in (("vLLM default but stacks", False), ("vLLM default", True)):
        changes = {**_TABLE, "torch_profiler_with_stack": stack}
        await engine.collective_rpc("bench_native", args=(changes,))
        costs[name] = [await recorded(Engine(engine), Theirs(engine), name)]
    return costs


def born(model: str, home: str) -> Any:
    """Start the engine as rlprof wants it."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    launch = rlprof.launch(config(home), role="native")
    os.environ |= launch.env
    given: dict[str, Any] = {
        "model": model,
        **_TINY.SMALL,
        "max_model_len": 512,
        **launch.engine_args,
    }
    chosen = AsyncEngineArgs(
        **given | {"max_model_len": 512, "worker_extension_cls": "_in_worker.Extension"}
    )
    ours = os.dup(1)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)  # what its processes get: they print tables of a hundred lines
        try:
            return AsyncLLM.from_engine_args(chosen)
        finally:
            os.dup2(ours, 1)


async def main(rounds: int) -> int:
    import torch
    import vllm

    print(f"vllm: {machine()}, vLLM {vllm.__version__}, torch {torch.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as home:
        logging.getLogger("rlprof").setLevel(logging.ERROR)  # a step has one of the two phases
        rlprof.register("engine", "vllm_native", Vllm)
        engine = born(_TINY.build(f"{home}/model"), home)
        try:
            await engine.collective_rpc("bench_watch")
            costs = await measured(engine, home, rounds)
        finally:
            engine.shutdown()
        del engine
        gc.collect()  # at the interpreter's end it is too late for what vLLM does then
    print(f"  {STEPS} engine steps, {REQUESTS} requests in flight, {rounds} rounds")
    table(costs)
    stall, around = beside_bare(costs, _MINE)
    print(f"  the range that names an engine step: {around:.0f} us of CPU more than a bare one")
    return 0 if verdict("stall at stop, rlprof in the worker / bare", stall, 1.3, "") else 1


if __name__ == "__main__":
    os.environ |= _TINY.QUIET | {"KINETO_LOG_LEVEL": "99"}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)))
