"""Two windows of one real AsyncLLM, whole or not."""

import os

import rlprof
from tests.vllm_real.drive import async_engine, batch, config, run, told


async def main():
    import vllm

    told(vllm=vllm.__file__)
    asked = config(vllm={"way": os.environ["WAY"]})
    engine = async_engine(rlprof.launch(asked, role="rollout"))
    with rlprof.open(asked, role="driver") as prof:
        prof.attach(engine, role="rollout")
        for step in prof.steps([1, 2]):
            async with prof.phase("rollout"):
                told(tokens=await batch(engine, f"step-{step}", [3, 4]))
    told(session="edited", run=str(prof.run_dir))
    engine.shutdown()


if __name__ == "__main__":
    run(main)
