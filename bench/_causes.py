"""The demo's actors with a cause of slowness that can be planted in each: what `planted.py` runs.

They are the classes of examples/ray_rl. `plant` names what they do worse from the next call on.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING, Any

import rlprof
from actors import Agent, Trainer, note, press
from on_vllm import Replica, facts_of

if TYPE_CHECKING:
    import torch

SLOW_RANK_S = 0.6
LOADER_S = 0.6
SYNC_S = 0.8
GAP_S = 0.6
STALL_S = 1.5
TAIL_TOKENS = 360
GARBAGE = 4_000_000


class PlantedTrainer(Trainer):
    """A training rank; the second one may be slow, the first one may wait for its data."""

    cause = ""
    rank = 0

    def plant(self, cause: str, rank: int) -> None:
        """Do as *cause* has it from now on."""
        self.cause, self.rank = cause, rank

    def log_prob(self, questions: list[str], keys: list[int]) -> list[float]:
        """Return what the policy gave these keys; ranks do not meet here."""
        with rlprof.span("data_loader"):
            time.sleep(LOADER_S if self.cause == "data" and self.rank == 0 else 0.005)
        import torch

        with torch.no_grad():
            found = self.policy(questions[self.share]).log_prob(torch.tensor(keys[self.share]))
        if self.cause == "straggler" and self.rank == 1:
            time.sleep(SLOW_RANK_S)
        return [float(one) for one in found]


class PlantedReplica(Replica):
    """A replica that may take its weights slowly, and writes as much as it is asked for."""

    cause = ""

    async def plant(self, cause: str) -> None:
        """Do as *cause* has it from now on."""
        self.cause = cause

    async def load(self, weights: dict[str, torch.Tensor]) -> None:
        """Take the weights."""
        if self.cause == "sync":
            await asyncio.sleep(SYNC_S)
        await super().load(weights)

    async def end(self, thought: str, name: str, tokens: int) -> tuple[str, dict[str, float]]:
        """Write *tokens* tokens."""
        answer = await self._write(thought, f"{name}-end", tokens)
        return answer.outputs[0].text, facts_of(answer)


class PlantedAgent(Agent):
    """The agent; one of its tool calls may stall, one of its trajectories may be long."""

    cause = ""

    async def plant(self, cause: str, replicas: list[Any]) -> None:
        """Do as *cause* has it from now on, on these replicas."""
        self.cause, self.replicas = cause, replicas

    async def _answer(self, step: int, number: int, question: str) -> tuple[int, str]:
        which = number % len(self.replicas)
        replica, unlucky = self.replicas[which], number == (7 * step) % 32
        async with rlprof.trajectory(f"{step}-{number}") as path:
            async with path.turn(0):
                async with path.request({"replica": which}) as request:
                    name, seed = f"{step}-{number}", 1000 * step + number
                    thought, key, facts = await replica.think.remote(question, name, seed)
                    note(request, facts)
                async with path.tool_call("calculator"):
                    await asyncio.sleep(STALL_S if self.cause == "tool" and unlucky else 0.01)
                    result = press(key, question)
            tokens = TAIL_TOKENS if self.cause == "tail" and unlucky else 24
            async with path.turn(1), path.request({"replica": which}) as request:
                words, facts = await replica.end.remote(f"{thought} {result}", name, tokens)
                note(request, facts)
                return key, f"{words} {result}"


_SAMPLES: list[Any] = []


def fill(cause: str) -> None:
    """Keep the objects that make a collection long, or keep none of them."""
    _SAMPLES[:] = [[] for _ in range(GARBAGE if cause == "gc" else 0)]
    gc.collect()
