"""One AsyncLLM of two workers, or of two engines; then one of its workers is killed in a window."""

import rlprof
from tests.vllm_real.drive import ARGUMENTS, EXTENSION, async_engine, batch, config, run, told


async def recorded(engine, name, chosen, ranks=None):
    with rlprof.open(chosen, role="driver") as prof:
        prof.attach(engine, role="rollout", replica=1, ranks=ranks, world_size=8)
        for _ in prof.steps([1]):
            await engine.collective_rpc("framework_begin")
            async with prof.phase("rollout"):
                await batch(engine, name, [6, 4, 5, 3])
                ran = await engine.collective_rpc("framework_count")
    told(session=name, run=prof.run_dir, ran=ran)


async def killed(engine):
    """Kill a worker in a window; the step goes on, and the next one finds the engine dead."""
    done = []
    with rlprof.open(config(role={"ranks": "all"}), role="driver") as prof:
        prof.attach(engine, role="rollout", replica=1)
        for step in prof.steps([1, 2]):
            async with prof.phase("rollout"):
                try:
                    await batch(engine, f"dying-{step}", [4])
                    await engine.collective_rpc("framework_fail")
                except Exception as exc:
                    told(session="killed", step=step, error=type(exc).__name__)
            done.append(step)
        told(session="killed", run=prof.run_dir, done=done)


async def main():
    asked = config(role={"ranks": "all"})
    launch = rlprof.launch(asked, role="rollout")
    sizes = ARGUMENTS["sizes"]
    engine = async_engine(launch, worker_extension_cls=EXTENSION, **sizes)
    try:
        await batch(engine, "warm", [8, 4, 4, 4])
        await recorded(engine, "worker", asked, ranks=[4, 5])
        await recorded(
            engine, "native", config(vllm={"way": "native"}, role={"ranks": "all"}), ranks=[4, 5]
        )
        await recorded(engine, "one rank", config(role={"ranks": [5]}), ranks=[4, 5])
        await killed(engine)
    finally:
        engine.shutdown()


if __name__ == "__main__":
    run(main)
