"""A small real RL loop, profiled: a policy samples from itself, is rewarded, and is updated.

Two ranks with gloo: `torchrun --nproc-per-node 2 examples/rl_loop/train.py`. The task is to write
a sequence whose tokens grow; the reward is the share of neighbours in order. rlprof adds the
lines that name it, and nothing else: take the config away and they do nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import rlprof

TOKENS, LENGTH, SEQUENCES = 16, 12, 32


class Policy(nn.Module):
    """A recurrent network over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(TOKENS, 32)
        self.core = nn.GRUCell(32, 64)
        self.head = nn.Linear(64, TOKENS)

    def forward(self, token: torch.Tensor, state: torch.Tensor) -> tuple[Any, torch.Tensor]:
        """Return the distribution of the next token, and the new state."""
        state = self.core(self.embed(token), state)
        return torch.distributions.Categorical(logits=self.head(state)), state


def write(policy: Policy, sequences: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample sequences, or read the given ones; return them and the log-probability of each."""
    token = torch.zeros(SEQUENCES, dtype=torch.long)
    state = torch.zeros(SEQUENCES, 64)
    tokens, log_probs = [], []
    for position in range(LENGTH):
        choice, state = policy(token, state)
        token = choice.sample() if sequences is None else sequences[:, position]
        tokens.append(token)
        log_probs.append(choice.log_prob(token))
    return torch.stack(tokens, dim=1), torch.stack(log_probs, dim=1).sum(dim=1)


@rlprof.annotate("score", span=True)
async def score(sequence: torch.Tensor) -> float:
    """Judge one sequence, as a reward service would: many at a time, each with a wait."""
    await asyncio.sleep(0.001 * float(sequence[0]))
    return float((sequence[1:] >= sequence[:-1]).float().mean())


async def judge(sequences: torch.Tensor) -> torch.Tensor:
    """Judge all sequences at once."""
    return torch.tensor(await asyncio.gather(*(score(sequence) for sequence in sequences)))


def update(policy: Policy, optimizer: Any, sequences: torch.Tensor, reward: torch.Tensor) -> None:
    """Take one policy-gradient step, averaged over the ranks."""
    _, log_probs = write(policy, sequences)
    optimizer.zero_grad()
    (-(reward - reward.mean()) * log_probs).mean().backward()
    for parameter in policy.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    optimizer.step()


def main() -> None:
    """Train for a few steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", help="an rlprof config; without one rlprof is off")
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    policy = Policy()
    for parameter in policy.parameters():
        dist.broadcast(parameter.data, src=0)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)

    with rlprof.open(args.config, role="actor") as prof:
        for step in prof.steps(range(1, args.steps + 1)):
            with prof.phase("rollout"), torch.no_grad():
                sequences, _ = write(policy, None)
            with prof.phase("reward"):
                reward = asyncio.run(judge(sequences))
            with prof.phase("update_actor"):
                update(policy, optimizer, sequences, reward)
            if dist.get_rank() == 0:
                print(f"step {step}: reward {reward.mean():.3f}")
    # gloo's threads let go of the last tensors a moment later; where Python ends before that,
    # torch 2.13 aborts the process, with rlprof or without.
    time.sleep(0.2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
