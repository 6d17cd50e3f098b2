"""The actors of the loop: trainers, rollout replicas, and the agent that stands between.

Ordinary classes. The engine is a toy that writes words without meaning (it is in
examples/third_party_engine); what is learned is which key of a calculator to press. Only the agent
has lines of rlprof: they name its trajectories.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import rlprof
from mini_engine import Engine

KEYS = {"plus": int.__add__, "minus": int.__sub__, "times": int.__mul__}


class Policy(nn.Module):
    """Reads the letters of a question."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.EmbeddingBag(128, 32)
        self.head = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, len(KEYS)))

    def forward(self, question: str) -> Any:
        """Return the distribution over the keys."""
        letters = torch.tensor([list(question.encode())])
        return torch.distributions.Categorical(logits=self.head(self.letters(letters))[0])


class Trainer:
    """A training rank: learns from its share of the trajectories, and averages the gradients."""

    def __init__(self, rank: int, ranks: int, meet: str) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=ranks)
        self.share = slice(rank, None, ranks)
        self.policy = Policy()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=0.05)

    def update(self, questions: list[str], keys: list[int], rewards: list[float]) -> float:
        """Take one policy-gradient step, and return the loss."""
        advantages = torch.tensor(rewards) - sum(rewards) / len(rewards)
        log_probs = torch.stack([
            self.policy(question).log_prob(torch.tensor(key))
            for question, key in zip(questions[self.share], keys[self.share], strict=True)
        ])  # fmt: skip
        loss = -(advantages[self.share] * log_probs).mean()
        self.optimizer.zero_grad()
        loss.backward()
        for parameter in self.policy.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        self.optimizer.step()
        return float(loss.item())

    def weights(self) -> dict[str, torch.Tensor]:
        """Return what the replicas need."""
        return dict(self.policy.state_dict())

    def checksum(self) -> str:
        """Return what tells any two sets of parameters apart, to the last bit."""
        bits = b"".join(one.detach().numpy().tobytes() for one in self.policy.parameters())
        return hashlib.sha256(bits).hexdigest()[:16]


class Replica:
    """A rollout replica: an engine and a copy of the policy; answers many calls at a time."""

    def __init__(self, **engine_args: Any) -> None:
        torch.set_num_threads(1)
        self.engine = Engine(**engine_args)
        self.policy = Policy()

    def load(self, weights: dict[str, torch.Tensor]) -> None:
        """Take the trainers' weights."""
        self.policy.load_state_dict(weights)

    def think(self, question: str, seed: int) -> tuple[str, int]:
        """Write a thought, and choose a key: the same ones for the same weights and seed."""
        (thought,) = self.engine.generate([question], max_tokens=48, seed=seed)
        with torch.no_grad():
            odds = self.policy(question).probs.tolist()
        return thought, random.Random(seed).choices(range(len(KEYS)), odds)[0]

    def conclude(self, thought: str, result: int) -> str:
        """Write the answer, now that the calculator has shown its *result*."""
        (words,) = self.engine.generate([f"{thought} {result}"], max_tokens=16)
        return f"{words} {result}"

    def close(self) -> None:
        """End the engine."""
        self.engine.close()


class Agent:
    """The agent loop: an async actor, with all trajectories of a step on their way at once."""

    def __init__(self, replicas: list[Any]) -> None:
        self.replicas = replicas

    async def rollout(self, step: int, questions: list[str]) -> list[tuple[int, str]]:
        """Return the key pressed for each question, and the answer."""
        return await asyncio.gather(*(
            self._answer(step, number, question) for number, question in enumerate(questions)
        ))  # fmt: skip

    async def _answer(self, step: int, number: int, question: str) -> tuple[int, str]:
        """Ask for a key, press it, and ask for the answer."""
        replica = self.replicas[number % len(self.replicas)]
        async with rlprof.trajectory(f"{step}-{number}") as path:
            async with path.turn(0):
                async with path.request():
                    seed = 1000 * step + number
                    thought, key = await replica.think.remote(question, seed)
                with path.tool_call("calculator"):
                    result = press(key, question)
            async with path.turn(1), path.request():
                return key, await replica.conclude.remote(thought, result)

    async def judge(self, step: int, questions: list[str], answers: list[str]) -> list[float]:
        """Reward the answers that are right."""
        return await asyncio.gather(*(
            self._score(step, number, questions[number], answers[number])
            for number in range(len(answers))
        ))  # fmt: skip

    async def _score(self, step: int, number: int, question: str, answer: str) -> float:
        """Judge one answer, as a reward service would: with a wait."""
        async with rlprof.trajectory(f"{step}-{number}") as path, path.reward():
            await asyncio.sleep(0.001)
            key = list(KEYS).index(question.split()[1])
            return float(answer.endswith(f" {press(key, question)}"))


def press(key: int, question: str) -> int:
    """Type the numbers of *question* into the calculator, with a key between them."""
    left, _, right = question.split()
    return list(KEYS.values())[key](int(left), int(right))
