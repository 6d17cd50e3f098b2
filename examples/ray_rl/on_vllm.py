"""The policy and its replicas on vLLM: one small language model, trained here and served there.

It reads `7 plus 5` and writes keys of a calculator; the first one is pressed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import tiny_model

ENV = tiny_model.QUIET
"""What a replica needs in its environment besides what rlprof asks for."""

LETTERS = "+-*"
"""The keys as the model writes them."""


def prepare(folder: str) -> None:
    """Write the model's configuration and tokenizer into *folder*."""
    tiny_model.build(folder)


class Policy(nn.Module):
    """The language model as it is trained."""

    learning_rate = 0.001

    def __init__(self, folder: str) -> None:
        from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

        super().__init__()
        self.model = LlamaForCausalLM(LlamaConfig.from_pretrained(folder)).float()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.keys = self.tokenizer(LETTERS).input_ids

    def forward(self, questions: list[str]) -> Any:
        """Return the distribution over the keys, for each question."""
        read = [self.tokenizer(question).input_ids for question in questions]
        longest = max(map(len, read))  # what is behind a question is not seen from its end
        tokens = torch.tensor([ids + [0] * (longest - len(ids)) for ids in read])
        ends = torch.tensor([len(ids) - 1 for ids in read])
        logits = self.model(input_ids=tokens).logits[torch.arange(len(read)), ends]
        return torch.distributions.Categorical(logits=logits[:, self.keys])

    def weights(self) -> dict[str, torch.Tensor]:
        """Return what the replicas load, by the names that vLLM knows."""
        return dict(self.model.state_dict())


class Replica:
    """A rollout replica: an async actor that keeps an engine; vLLM's own processes are below it."""

    concurrency = 64

    def __init__(self, folder: str, **engine_args: Any) -> None:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        # In float32 a prompt gives the same letters in any company.
        given = {**tiny_model.SMALL, **engine_args}
        self.engine = AsyncLLM.from_engine_args(
            AsyncEngineArgs(model=folder, worker_extension_cls="weight_sync.WeightSync", **given)
        )
        self.keys: list[int] = []

    async def ready(self) -> None:
        """Answer, once the engine has written something."""
        self.keys = self.engine.get_tokenizer()(LETTERS).input_ids
        await self._write("hello", "warm", 2)

    async def load(self, weights: dict[str, torch.Tensor]) -> None:
        """Take the trainers' weights, through this loop's own extension of the workers."""
        from safetensors.torch import save

        await self.engine.collective_rpc("ray_rl_load", args=(save(weights),))
        await self.engine.reset_prefix_cache()

    async def think(self, question: str, name: str, seed: int) -> tuple[str, int, dict[str, float]]:
        """Write some keys: the same ones for the same weights and seed. The first is pressed."""
        answer = await self._write(question, f"{name}-think", 8, seed, self.keys)
        found = answer.outputs[0]
        return found.text, self.keys.index(found.token_ids[0]), facts_of(answer)

    async def conclude(self, thought: str, name: str) -> tuple[str, dict[str, float]]:
        """Write some words."""
        answer = await self._write(thought, f"{name}-conclude", 24)
        return answer.outputs[0].text, facts_of(answer)

    async def _write(
        self, prompt: str, name: str, tokens: int, seed: int = 0, allowed: list[int] | None = None
    ) -> Any:
        """Have one request answered."""
        from vllm import SamplingParams

        chosen = SamplingParams(
            max_tokens=tokens, ignore_eos=True, seed=seed, allowed_token_ids=allowed
        )
        last: Any = None
        async for output in self.engine.generate(prompt, chosen, request_id=name):
            last = output
        return last

    async def close(self) -> None:
        """End the engine, and its processes with it."""
        self.engine.shutdown()


def facts_of(answer: Any) -> dict[str, float]:
    """Return what vLLM knows of a request, by the names that rlprof's report reads."""
    facts: dict[str, float] = {
        "tokens": len(answer.outputs[0].token_ids),
        "prompt_tokens": len(answer.prompt_token_ids),
    }
    times = answer.metrics
    if times is None:  # the engine was launched without statistics
        return facts
    queued_s = times.scheduled_ts - times.queued_ts
    return {**facts, "queued_s": queued_s, "first_token_s": times.first_token_latency}
