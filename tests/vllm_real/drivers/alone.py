"""One AsyncLLM: windows inside its worker, windows of vLLM's own profiler, some faults."""

import asyncio
from contextlib import suppress

import rlprof
from tests.vllm_real.drive import EXTENSION, async_engine, batch, config, generate, run, told

LENGTHS = {1: [6], 2: [9, 3], 3: [4, 4, 4], 4: [12], 5: [5, 7], 6: [8]}
"""By step: how many tokens each request gets."""


async def windows(engine, name, chosen, steps=LENGTHS):
    """Record *steps*, each with requests of its own; report how often the model ran."""
    with rlprof.open(chosen, role="driver") as prof:
        prof.attach(engine, role="rollout")
        for step in prof.steps(steps):
            await engine.collective_rpc("framework_begin")
            async with prof.phase("rollout"):
                got = await batch(engine, f"{name}-{step}", steps[step])
                ran = (await engine.collective_rpc("framework_count"))[0]
            told(session=name, step=step, tokens=got, ran=ran)
    told(session=name, run=prof.run_dir)


async def requests_in_flight(engine):
    """End a window while requests are in flight and after one was cancelled."""
    with rlprof.open(config(steps=[1]), role="driver") as prof:
        prof.attach(engine, role="rollout")
        for _ in prof.steps([1]):
            async with prof.phase("rollout"):
                long = asyncio.create_task(batch(engine, "long", [150, 150]))
                lost = asyncio.create_task(generate(engine, "lost", 150))
                await batch(engine, "short", [10])
                lost.cancel()
                with suppress(asyncio.CancelledError):
                    await lost
        told(session="in flight", run=prof.run_dir, tokens=await long)


async def counted(engine):
    """Record only counters, as an always-on run does."""
    with rlprof.open(config(tool="none", counters={"every_s": 0.05}), role="driver") as prof:
        prof.attach(engine, role="rollout")
        got = await batch(engine, "counted", [150, 150, 150])
    told(session="counted", run=prof.run_dir, tokens=got)


async def weights_come(engine, name):
    """Load weights inside a window, and generate after that."""
    with rlprof.open(config(steps=[1]), role="driver") as prof:
        prof.attach(engine, role="rollout")
        for _ in prof.steps([1]):
            await engine.collective_rpc("framework_begin")
            async with prof.phase("rollout"):
                await batch(engine, "before", [5])
                ran = (await engine.collective_rpc("framework_count"))[0]
                await engine.collective_rpc("framework_update_weights")
                await batch(engine, "after", [20])
    told(session=name, run=prof.run_dir, ran=ran)


async def paused(engine):
    """Open a window on an engine that is paused."""
    with rlprof.open(config(steps=[1]), role="driver") as prof:
        prof.attach(engine, role="rollout")
        await engine.pause_generation()
        for _ in prof.steps([1]):
            async with prof.phase("rollout"):
                pass
        await engine.resume_generation()
        told(session="paused", run=prof.run_dir, tokens=await batch(engine, "resumed", [4]))


async def somebody_else(engine):
    """Open a native window while another user has vLLM's profiler."""
    with rlprof.open(config(steps=[1], vllm={"way": "native"}), role="driver") as prof:
        prof.attach(engine, role="rollout")
        await engine.start_profile("theirs")
        for _ in prof.steps([1]):
            async with prof.phase("rollout"):
                got = await batch(engine, "between", [4])
        await engine.stop_profile()
    told(session="busy", run=prof.run_dir, tokens=got)


async def main():
    import vllm

    told(version=vllm.__version__)
    asked = config()
    engine = async_engine(rlprof.launch(asked, role="rollout"), worker_extension_cls=EXTENSION)
    try:
        await batch(engine, "warm", [8, 4])
        await windows(engine, "worker", asked)
        await windows(engine, "native", config(vllm={"way": "native"}))
        three = {"iterations": {"skip": 2, "count": 3}}
        await windows(engine, "worker three", config(vllm=three), {1: [12], 2: [9, 4]})
        await windows(engine, "native three", config(vllm={"way": "native", **three}), {1: [12]})
        await requests_in_flight(engine)
        await counted(engine)
        await weights_come(engine, "worker weights")
        await paused(engine)
        await somebody_else(engine)
        told(tokens=await batch(engine, "last", [5]))
    finally:
        engine.shutdown()


if __name__ == "__main__":
    run(main)
