"""Two windows of one real engine, whole or not, and the state of its schedulers afterwards."""

import os

import rlprof
from tests.sglang_real.drive import batch, config, run, tokenizer_manager, told


async def main():
    import sglang

    told(sglang=sglang.__file__)
    asked = config(sglang={"way": os.environ["WAY"]})
    launch = rlprof.launch(asked, role="rollout", ranks=[0])
    with tokenizer_manager(launch) as manager:
        with rlprof.open(asked, role="driver") as prof:
            prof.attach(manager, role="rollout", replica=0, ranks=[0])
            for step in prof.steps([1, 2]):
                async with prof.phase("rollout"):
                    told(tokens=await batch(manager, f"step-{step}", [3, 4]))
        told(session="edited", run=str(prof.run_dir))
        told(tokens=await batch(manager, "afterwards", [3, 4]))
        states = await manager.get_internal_state()
        told(profiling=[(one.get("rlprof") or {}).get("profiling") for one in states])


if __name__ == "__main__":
    run(main)
