"""The policy and its replicas with a toy for an engine: where no vLLM can be had.

The engine (examples/third_party_engine) writes words without meaning. The policy beside it chooses
the key.
"""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn

from actors import KEYS
from mini_engine import Engine

ENV: dict[str, str] = {}
"""What a replica needs in its environment beside what rlprof asks for."""


def prepare(folder: str) -> None:
    """Make nothing: the policy is made of nothing but a seed."""


class Policy(nn.Module):
    """Reads the letters of questions."""

    learning_rate = 0.05

    def __init__(self, folder: str) -> None:  # noqa: ARG002 -- every policy is given one
        super().__init__()
        self.letters = nn.EmbeddingBag(128, 32)
        self.head = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, len(KEYS)))

    def forward(self, questions: list[str]) -> Any:
        """Return the distribution over the keys, for each question."""
        read = [self.letters(torch.tensor([list(question.encode())])) for question in questions]
        return torch.distributions.Categorical(logits=self.head(torch.cat(read)))

    def weights(self) -> dict[str, torch.Tensor]:
        """Return what the replicas load."""
        return dict(self.state_dict())


class Replica:
    """A rollout replica: an engine and a copy of the policy; answers many calls at a time."""

    concurrency = 16

    def __init__(self, folder: str, **engine_args: Any) -> None:
        torch.set_num_threads(1)
        self.engine = Engine(**engine_args)
        self.policy = Policy(folder)

    def ready(self) -> None:
        """Answer, once the engine is there."""

    def load(self, weights: dict[str, torch.Tensor]) -> None:
        """Take the trainers' weights."""
        self.policy.load_state_dict(weights)

    def think(self, question: str, name: str, seed: int) -> tuple[str, int, dict[str, float]]:  # noqa: ARG002 -- see on_vllm.py
        """Write a thought, and choose a key: the same ones for the same weights and seed."""
        (thought,) = self.engine.generate([question], max_tokens=48, seed=seed)
        with torch.no_grad():
            odds = self.policy([question]).probs[0].tolist()
        key = random.Random(seed).choices(range(len(KEYS)), odds)[0]
        return thought, key, {"tokens": len(thought.split())}

    def conclude(self, thought: str, name: str) -> tuple[str, dict[str, float]]:  # noqa: ARG002
        """Write some more words."""
        (words,) = self.engine.generate([thought], max_tokens=16)
        return words, {"tokens": len(words.split())}

    def close(self) -> None:
        """End the engine."""
        self.engine.close()
