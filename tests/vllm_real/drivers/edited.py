"""Two windows of one real AsyncLLM, whatever becomes of them."""

import rlprof
from tests.vllm_real.drive import async_engine, batch, config, run, told


async def main():
    import vllm

    told(vllm=vllm.__file__)
    engine = async_engine(rlprof.launch(config(), role="rollout"))
    with rlprof.open(config(), role="driver") as prof:
        prof.attach(engine, role="rollout")
        for step in prof.steps([1, 2]):
            async with prof.phase("rollout"):
                told(tokens=await batch(engine, f"step-{step}", [3, 4]))
    told(session="edited", run=str(prof.run_dir))
    engine.shutdown()


if __name__ == "__main__":
    run(main)
