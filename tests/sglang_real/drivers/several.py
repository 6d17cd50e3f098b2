"""A TokenizerManager as verl holds it, of two schedulers: two ranks of one, or two replicas."""

import rlprof
from tests.sglang_real.drive import ARGUMENTS, config, generate, run, tokenizer_manager
from tests.sglang_real.sessions import windows


async def main():
    launch = rlprof.launch(config(sglang={"requests": False}), role="rollout", ranks=[0, 1])
    with tokenizer_manager(launch, **ARGUMENTS["sizes"]) as manager:
        await generate(manager, "first", 3)
        two = {"ranks": [0, 1], "iterations": {"skip": 1, "count": 2}}
        both = {**two, "role": {"ranks": "all"}}
        await windows("worker", manager, way="worker", **both)
        await windows("native", manager, way="native", **both)
        await windows("one rank", manager, role={"ranks": [1]}, **two)
        if "dp_size" in ARGUMENTS["sizes"]:  # one request: the other replica has nothing to do
            for way in ("worker", "native"):
                await windows(f"idle {way}", manager, lengths=[9], way=way, **both)
        if "tp_size" in ARGUMENTS["sizes"]:
            await windows("merged", manager, native_merge=True, **both)


if __name__ == "__main__":
    run(main)
