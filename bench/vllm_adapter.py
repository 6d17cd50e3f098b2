"""What recording a vLLM replica costs: how long generation stands still at stop, and each step.

`.envs/vllm/bin/python bench/vllm_adapter.py [ROUNDS]` (beside a file `vllm.py` nothing here could
import vLLM)

One AsyncLLM on the CPU with four requests in flight; 200 engine steps are recorded in turn by
bare torch.profiler in the worker (its stop and raw JSON), by rlprof in the worker, by vLLM's own
profiler as tuned as it goes, and by rlprof through that one. All record operators alone. At the end
vLLM's defaults, without and with the stacks that are one of them: the engine is the same, and its
worker is given other options (its frontend, recorded by default as well, is left out).
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from _in_worker import MODEL, STEPS, STOPS
from _measure import machine, ratio, verdict
from _ways import Bare, Flow, Ours, Theirs, Way

sys.path.append(str(Path(__file__).parent.parent))
import rlprof
from rlprof_vllm import Vllm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TINY: Any = importlib.import_module("tests.vllm_real.tiny")
_REQUESTS = 4
_BEFORE = 120
_STEPS = 200
_AFTER = 40
_MINE = "rlprof, worker"
_TABLE = {"torch_profiler_use_gzip": True, "torch_profiler_dump_cuda_time_total": True}


class Cost(NamedTuple):
    """One recording."""

    gap: float
    """The longest time between two tokens at stop."""
    stop: float
    """How long whoever asked for it waits."""
    cpu: float
    """CPU of the worker's process for it."""
    idle: float
    """CPU of an engine step before, in seconds; median."""
    step: float
    """And while it is recorded."""
    around: float
    """Of that, what the range around the model takes."""
    events: int


async def recorded(engine: Any, way: Way, name: str) -> Cost:
    """Record 200 engine steps that way."""
    await engine.collective_rpc("bench_log")
    flow = Flow(engine, name, _REQUESTS)
    await flow.until(_BEFORE)
    asked = time.perf_counter()
    await way.begin()
    began = time.perf_counter()
    await flow.until(flow.tokens + _STEPS)
    ends = time.perf_counter()
    await way.end()
    ended = time.perf_counter()
    await flow.until(flow.tokens + _AFTER)
    log = (await engine.collective_rpc("bench_log"))[0]
    await flow.end()
    if isinstance(way, Ours):
        await way.exported()
    late = [at for at in flow.times if at >= ends]
    gaps = (b - a for a, b in zip([ends, *late], late, strict=False))
    last = [one for one in log if one[0] in STOPS and one[1] > ends - 0.1][-1]
    warm = asked - (asked - flow.times[0]) * 0.6  # the first of them run on cold caches
    idle, step = step_cpu(log, warm, asked), step_cpu(log, began, ends)
    outer, inner = (step_cpu(log, began, ends, [name]) for name in (STEPS[0], MODEL))
    return Cost(max(gaps), ended - ends, last[4], idle, step, outer - inner, way.events())


def step_cpu(log: Sequence[Any], begin: float, end: float, calls: Sequence[str] = STEPS) -> float:
    """Return the CPU of an engine step between two times, median; or of some calls of it."""
    found = {name: [one[3] for one in log if one[0] == name and begin < one[1] < end]
             for name in calls}  # fmt: skip
    return float(sum(statistics.median(times) for times in found.values() if times))


def config(home: str) -> dict[str, Any]:
    """Return a config with both ways to record the same engine, each in a phase of its own."""
    return {
        "run_dir": f"{home}/runs", "scratch_dir": f"{home}/scratch", "tool": "torch",
        "tools": {"torch": {"contents": ["cpu"]}}, "steps": {"every": 1}, "calibrate": False,
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
                cost = await recorded(engine, way, f"{name} {turn}")
                if turn:
                    costs.setdefault(name, []).append(cost)
    for name, stack in (("vLLM default but stacks", False), ("vLLM default", True)):
        changes = {**_TABLE, "torch_profiler_with_stack": stack}
        await engine.collective_rpc("bench_native", args=(changes,))
        costs[name] = [await recorded(engine, Theirs(engine), name)]
    return costs


def told(costs: Mapping[str, Sequence[Cost]]) -> bool:
    """Print medians and what they are beside the bare one's; return whether the limits hold."""
    print(f"  {'':<23}  events  stall s  ratio   stop s  ratio   CPU s  ratio"
          "   CPU of a step, us: before, recorded, range")  # fmt: skip
    for name, some in costs.items():
        bare = costs["bare"]
        if len(some) < len(bare):
            bare = [_median(bare)] * len(some)
        middle = _median(some)
        line = f"  {name:<23} {middle.events:>7.0f}"
        for place in range(3):
            beside = ratio([one[place] for one in some], [one[place] for one in bare])
            line += f"  {middle[place]:>7.3f} {beside:>6.2f}"
        print(line, *(f"{cpu * 1e6:>9.0f}" for cpu in (middle.idle, middle.step, middle.around)))
    mine, bare = costs[_MINE], costs["bare"]
    stall = ratio([one.gap for one in mine], [one.gap for one in bare])
    around = statistics.median(a.around - b.around for a, b in zip(mine, bare, strict=True))
    print(
        f"  the range that names an engine step: {around * 1e6:.0f} us of CPU more than a bare one"
    )
    return verdict("stall at stop, rlprof in the worker / bare", stall, 1.3, "")


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


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
    print(f"  {_STEPS} engine steps, {_REQUESTS} requests in flight, {rounds} rounds")
    return 0 if told(costs) else 1


if __name__ == "__main__":
    os.environ |= _TINY.QUIET | {"KINETO_LOG_LEVEL": "99"}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)))
