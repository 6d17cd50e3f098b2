"""Two actors on Ray, driven step by step; what is recorded is said in profile.yaml."""

from __future__ import annotations

import ray
import torch

import rlprof_ray


class Actor:
    """An ordinary training rank."""

    def __init__(self, rank: int) -> None:
        torch.manual_seed(rank)
        self.policy = torch.nn.Linear(64, 64)

    def update(self) -> float:
        """Train on one batch, and return the loss."""
        loss = self.policy(torch.randn(256, 64)).square().mean()
        loss.backward()
        return float(loss.item())


if __name__ == "__main__":
    fleet = rlprof_ray.Fleet("profile.yaml")  # names the run; raises ConfigError with every fault
    actors = [
        ray.remote(Actor).options(runtime_env=fleet.launch("actor", rank).runtime_env).remote(rank)
        for rank in range(2)
    ]
    with fleet:
        fleet.attach(actor=actors)  # live actors; their class needs no change
        for step in fleet.steps(range(1, 4)):
            with fleet.phase("update_actor"):
                losses = ray.get([actor.update.remote() for actor in actors])
            print(step, losses)
