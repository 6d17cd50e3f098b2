"""Two schedulers in a program under nsys: they are its children, and record there."""

import rlprof
from tests.sglang_real.drive import ARGUMENTS, batch, config, run, tokenizer_manager, told
from tests.sglang_real.sessions import LENGTHS, counted, settled


async def main():
    tools = {"nsys": ARGUMENTS["options"]}
    asked = config(tool="nsys", tools=tools, role={"ranks": "all"})
    launch = rlprof.launch(asked, role="rollout", ranks=[0, 1])
    with tokenizer_manager(launch, tp_size=2) as manager:
        await batch(manager, "warm", LENGTHS)
        with rlprof.open(asked, role="driver") as prof:
            prof.attach(manager, role="rollout", replica=0, ranks=[0, 1])
            for step in prof.steps([1, 2]):
                before = await counted(manager)
                async with prof.phase("rollout"):
                    await batch(manager, f"step-{step}", LENGTHS)
                    await settled(manager)
                told(session="nsys", step=step, ran=await counted(manager) - before)
        told(session="nsys", run=prof.run_dir)


if __name__ == "__main__":
    run(main)
