"""The actors that need no engine: trainers, and the agent that asks replicas.

Ordinary classes. What is learned is which key of a calculator to press. Only the agent has lines of
rlprof: they name its trajectories, and note what the engine says of each request. The policy and
its replicas are in on_vllm.py.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

import rlprof

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = {"plus": int.__add__, "minus": int.__sub__, "times": int.__mul__}
STALL_S = 1.0
"""How long the calculator forgets one question of each step, once all others have their answer."""


class Trainer:
    """A training rank: learns from its share of the trajectories, and averages the gradients."""

    def __init__(self, rank: int, ranks: int, meet: str, make_policy: Callable[[], Any]) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=ranks)
        self.share = slice(rank, None, ranks)
        self.policy = make_policy()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=self.policy.learning_rate)

    def update(self, questions: list[str], keys: list[int], rewards: list[float]) -> float:
        """Take one policy-gradient step, and return the loss."""
        advantages = torch.tensor(rewards) - sum(rewards) / len(rewards)
        log_probs = self.policy(questions[self.share]).log_prob(torch.tensor(keys[self.share]))
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
        weights: dict[str, torch.Tensor] = self.policy.weights()
        return weights

    def checksum(self) -> str:
        """Return what tells any two sets of parameters apart, to the last bit."""
        bits = b"".join(one.detach().numpy().tobytes() for one in self.policy.parameters())
        return hashlib.sha256(bits).hexdigest()[:16]


class Agent:
    """The agent loop: an async actor, with all trajectories of a step on their way at once."""

    def __init__(self, replicas: list[Any]) -> None:
        self.replicas = replicas
        self.others: list[asyncio.Future[Any]] = []

    async def rollout(self, step: int, questions: list[str]) -> list[tuple[int, str]]:
        """Return the key pressed for each question, and the answer."""
        answers = [
            asyncio.ensure_future(self._answer(step, number, question))
            for number, question in enumerate(questions)
        ]
        self.others = [answer for number, answer in enumerate(answers) if number != step]
        return await asyncio.gather(*answers)

    async def _answer(self, step: int, number: int, question: str) -> tuple[int, str]:
        """Ask for a key, press it, and ask for the answer."""
        place = number % len(self.replicas)
        replica, where = self.replicas[place], {"replica": place}
        name, seed = f"{step}-{number}", 1000 * step + number
        async with rlprof.trajectory(name, {"version": step, "group": question}) as path:
            async with path.turn(0):
                async with path.request(where) as request:
                    thought, key, facts = await replica.think.remote(question, name, seed)
                    note(request, facts)
                async with path.tool_call("calculator"):
                    if number == step:  # a fault on purpose, for `rlprof why` to find
                        await asyncio.wait(self.others)
                        await asyncio.sleep(STALL_S)
                    result = press(key, question)
            async with path.turn(1), path.request(where) as request:
                words, facts = await replica.conclude.remote(f"{thought} {result}", name)
                note(request, facts)
                return key, f"{words} {result}"

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


def note(request: Any, facts: dict[str, float]) -> None:
    """Keep what the engine says of a request with its span."""
    for name, value in facts.items():
        request.note(name, value)


def press(key: int, question: str) -> int:
    """Type the numbers of *question* into the calculator, with a key between them."""
    left, _, right = question.split()
    return list(KEYS.values())[key](int(left), int(right))
