"""An AsyncLLM recorded: `python async_llm.py MODEL '{"max_model_len": 256}'`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import rlprof


async def main(model: str, more: dict[str, Any]) -> None:
    """Generate for three steps, the second of which the config has recorded."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    launch = rlprof.launch("profile.yaml", role="rollout", ranks=[0])
    os.environ |= launch.env
    arguments = AsyncEngineArgs(model=model, **more, **launch.engine_args)
    engine = AsyncLLM.from_engine_args(arguments)
    with rlprof.open("profile.yaml", role="driver") as prof:
        prof.attach(engine, role="rollout", replica=0, ranks=[0])
        for step in prof.steps(range(1, 4)):
            async with prof.phase("rollout"):
                await generate(engine, step)
    engine.shutdown()


async def generate(engine: Any, step: int) -> None:
    """Have four requests answered."""
    from vllm import SamplingParams

    async def one(name: str) -> None:
        prompt = {"prompt_token_ids": [1, 5, 6]}
        async for _ in engine.generate(prompt, SamplingParams(max_tokens=16), request_id=name):
            pass

    await asyncio.gather(*(one(f"{step}-{number}") for number in range(4)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}))
