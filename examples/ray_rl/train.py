"""A small real RL loop on Ray, profiled: an agent learns which key of a calculator to press.

Two trainers update one policy together (gloo), two rollout replicas write with an engine that has
its weights (`on_vllm.py`), and one agent asks them, calls its tool, and asks again (`actors.py`).
This is the driver. rlprof adds the lines that name it, and nothing else: without a config they do
nothing.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import on_vllm as on
import rlprof_ray
from actors import KEYS, Agent, Trainer

QUESTIONS = 32
NO_RAY = 69
"""The exit code where Ray cannot start."""


def start_ray() -> Any:
    """Start a Ray of our own, as quiet as it can be."""
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # else a token is left in ~/.ray
    try:
        import ray

        ray.init(
            "local", num_cpus=5, include_dashboard=False, log_to_driver=False, logging_level="error"
        )
    except Exception as exc:
        print(f"Ray cannot start: {type(exc).__name__}: {exc}", file=sys.stderr)
        sys.exit(NO_RAY)
    return ray


def ask(step: int) -> list[str]:
    """Make up the questions of a step: `7 plus 5`."""
    draw = random.Random(step)
    return [
        f"{draw.randint(3, 9)} {draw.choice(list(KEYS))} {draw.randint(3, 9)}"
        for _ in range(QUESTIONS)
    ]


def train(ray: Any, fleet: rlprof_ray.Fleet, steps: int, folder: Path) -> None:
    """Start the actors, attach them to the fleet, and go through the steps."""
    model, meet = str(folder / "model"), f"file://{folder}/trainers"
    ray.get(ray.remote(on.prepare).remote(model))
    trainers = [
        ray.remote(Trainer)
        .options(runtime_env=fleet.launch("actor", rank).runtime_env)
        .remote(rank, 2, meet, partial(on.Policy, model))
        for rank in range(2)
    ]
    replicas = []
    for rank in range(2):
        launch = fleet.launch("rollout", rank)  # what to start its engine with
        replica = ray.remote(on.Replica).options(
            max_concurrency=on.Replica.concurrency,
            runtime_env={"env_vars": {**on.ENV, **launch.env}},
        )
        replicas.append(replica.remote(model, **launch.engine_args))
    ray.get([replica.ready.remote() for replica in replicas])
    agent = ray.remote(Agent).remote(replicas)
    fleet.attach(
        actor=trainers,
        rollout=[rlprof_ray.Replica(replica, via="actor:engine") for replica in replicas],
        agent=[agent],
    )
    for step in fleet.steps(range(1, steps + 1)):
        questions = ask(step)
        with fleet.phase("weight_sync"):
            weights = trainers[0].weights.remote()
            ray.get([replica.load.remote(weights) for replica in replicas])
        with fleet.phase("rollout"):
            keys, answers = zip(*ray.get(agent.rollout.remote(step, questions)), strict=True)
        with fleet.phase("reward"):
            rewards = ray.get(agent.judge.remote(step, questions, answers))
        with fleet.phase("update_actor") as update:
            update.note("version", step)
            ray.get([trainer.update.remote(questions, keys, rewards) for trainer in trainers])
        print(f"step {step}: reward {sum(rewards) / len(rewards):.3f}")
    print("parameters:", *ray.get([trainer.checksum.remote() for trainer in trainers]))
    ray.get([replica.close.remote() for replica in replicas])


def main() -> None:
    """Train for a few steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", help="an rlprof config; without one rlprof is off")
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    ray = start_ray()
    with rlprof_ray.Fleet(args.config) as fleet, tempfile.TemporaryDirectory() as folder:
        train(ray, fleet, args.steps, Path(folder))
    ray.shutdown()


if __name__ == "__main__":
    main()
