"""A TokenizerManager with one scheduler, as verl holds it, and windows of every kind."""

import asyncio
from pathlib import Path

import rlprof
from tests.sglang_real.drive import (
    ARGUMENTS,
    batch,
    config,
    generate,
    run,
    start_profile,
    tokenizer_manager,
    told,
)
from tests.sglang_real.sessions import SIX, session, windows

SKIPPED = {"steps": SIX, "lengths": [14], "iterations": {"skip": 3, "count": 5}}
"""Windows of one request: a second one could arrive after the skipped steps."""
ASKED = {
    "nothing": {},
    "one step": {"iterations": {"count": 1}},
    "stack": {"contents": ["stack"], "iterations": {"count": 10}},
    "shapes": {"contents": ["shapes"]},
    "cuda": {"contents": ["cuda"]},
}
"""Options and contents; `tests/sglang_adapter/test_options.py` has more of them."""
DEADLY = {
    "by stage without a number": {"profile_by_stage": True},
    "a folder below a file": {"num_steps": 1},
    "memory": {"activities": ["MEM"]},
    "cuda profiler": {"activities": ["CUDA_PROFILER"]},
}
"""Requests that end an engine without rlprof inside."""


async def main():
    launch = rlprof.launch(config(), role="rollout", ranks=[0])
    with tokenizer_manager(launch) as manager:
        await generate(manager, "first", 3)
        await windows("worker six", manager, way="worker", **SKIPPED)
        await windows("native six", manager, way="native", **SKIPPED)
        for way in ("worker", "native"):
            await windows(f"{way} whole", manager, way=way)
        await windows("stages", manager, way="native", by_stage=True, iterations={"count": 2})
        for name, asked in ASKED.items():
            await windows(f"asked {name}", manager, steps=(1,), way="native", **asked)
        await windows("any tool", manager, steps=(1,), tool=["stacks", "torch_memory"])
        await deadly(manager)
        await somebody_else(manager)
        await weights(manager)
        await counted(manager)
        await in_flight(manager)


async def deadly(manager):
    """Send requests that end an engine: through the adapter where it allows them, and directly."""
    below = Path(ARGUMENTS["home"], "a-file")
    below.write_text("in the way")
    refused = {
        "below a file": {"profiler_dir": str(below / "x")},
        "memory": {"activities": ["MEM"]},
    }
    for name, asked in refused.items():
        await windows(f"refused {name}", manager, steps=(1,), lengths=[4], way="native", **asked)
    for name, asked in DEADLY.items():
        folder = below / "x" if "folder" in name else Path(ARGUMENTS["home"], "theirs")
        try:
            await start_profile(manager, output_dir=str(folder), with_stack=False, **asked)
            said = "started"
        except RuntimeError as exc:
            said = str(exc)
        tokens = await batch(manager, f"after {name}", [4, 3])
        try:
            await manager.stop_profile()
        except RuntimeError as exc:
            told(session="deadly", name=name, stop=str(exc))
        told(session="deadly", name=name, said=said, tokens=tokens)
    await windows("after all", manager, steps=(1,), way="native", iterations={"count": 2})


async def somebody_else(manager):
    """Record while another user has a session, which must not be ended."""
    theirs = str(Path(ARGUMENTS["home"], "busy"))
    await start_profile(manager, output_dir=theirs, with_stack=False)
    await windows("busy", manager, steps=(1,), lengths=[4], way="native")
    await manager.stop_profile()
    told(session="busy", theirs=[file.name for file in Path(theirs).iterdir()])


async def weights(manager):
    from sglang.srt.managers.io_struct import UpdateWeightFromDiskReqInput

    asked = UpdateWeightFromDiskReqInput(model_path=ARGUMENTS["model"], load_format="auto")
    with session("weights", manager, way="worker") as prof:
        for _ in prof.steps([1]):
            async with prof.phase("rollout"):
                before = await generate(manager, "before", 6)
                await manager.update_weights_from_disk(asked, None)  # there are none
                after = await generate(manager, "after", 9)
    told(session="weights", tokens=[before, after])


async def counted(manager):
    """Record only counters, as an always-on run does."""
    with rlprof.open(config(tool="none", counters={"every_s": 0.05}), role="driver") as prof:
        prof.attach(manager, role="rollout", replica=0, ranks=[0])
        got = await batch(manager, "counted", [150, 150, 150])
    told(session="counted", run=prof.run_dir, tokens=got)


async def in_flight(manager):
    """End a window while requests are in flight and after one was aborted."""
    long = asyncio.create_task(batch(manager, "long", [150, 150]))
    with session("in flight", manager) as prof:
        for _ in prof.steps([1]):
            async with prof.phase("rollout"):
                lost = asyncio.create_task(generate(manager, "lost", 400))
                await batch(manager, "short", [5])
                manager.abort_request("lost")
                await asyncio.wait({lost})
    told(session="in flight", tokens=await long)


if __name__ == "__main__":
    run(main)
