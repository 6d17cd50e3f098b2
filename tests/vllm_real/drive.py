"""Shared by the drivers: an engine launched as rlprof asks, and requests for it.

A driver is a process of its own: vLLM reads its settings at its import, and the death of an
engine must not end the tests.
"""

import asyncio
import os

from tests.real_drivers import ARGUMENTS, config_of, told
from tests.vllm_real.tiny import SMALL

EXTENSION = "tests.vllm_real.framework.FrameworkExtension"


def config(**changes):
    """Return a config: every step, all replicas by `vllm` and the tool torch."""
    return config_of("vllm", changes)


def async_engine(launch, **more):
    """Start an AsyncLLM."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    os.environ |= launch.env
    given = {"model": ARGUMENTS["model"], **SMALL, **launch.engine_args, **more}
    return AsyncLLM.from_engine_args(AsyncEngineArgs(**given))


async def generate(engine, name, tokens):
    """Send one request; return the number of tokens."""
    from vllm import SamplingParams

    last = None
    prompt = {"prompt_token_ids": [1, 5 + len(name), 6]}
    chosen = SamplingParams(max_tokens=tokens, ignore_eos=True)
    async for output in engine.generate(prompt, chosen, request_id=name):
        last = output
    return len(last.outputs[0].token_ids)


async def batch(engine, name, lengths):
    """Send several requests at once."""
    asked = (generate(engine, f"{name}-{n}", tokens) for n, tokens in enumerate(lengths))
    return await asyncio.gather(*asked)


def run(main):
    """Run a driver, a coroutine function, to its end."""
    asyncio.run(main())
    told(done=True)
