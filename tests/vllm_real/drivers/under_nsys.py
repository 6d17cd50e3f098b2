"""An AsyncLLM in a program under nsys: its workers are the program's children, and record there."""

import rlprof
from tests.vllm_real.drive import ARGUMENTS, EXTENSION, async_engine, batch, config, run, told


async def main():
    asked = config(tool="nsys", role={"ranks": "all"}, tools={"nsys": ARGUMENTS["options"]})
    launch = rlprof.launch(asked, role="rollout")
    engine = async_engine(launch, worker_extension_cls=EXTENSION, **ARGUMENTS["sizes"])
    try:
        await batch(engine, "warm", [8, 4])
        with rlprof.open(asked, role="driver") as prof:
            prof.attach(engine, role="rollout", replica=1)
            for step in prof.steps([1, 2]):
                await engine.collective_rpc("framework_begin")
                async with prof.phase("rollout"):
                    await batch(engine, f"step-{step}", [6, 4])
                ran = await engine.collective_rpc("framework_count")
                told(session="nsys", step=step, ran=ran)
        told(session="nsys", run=prof.run_dir)
    finally:
        engine.shutdown()


if __name__ == "__main__":
    run(main)
