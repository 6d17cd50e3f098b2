"""How often `rlprof why` names a cause planted in the real demo, and how good its bound is.

`.envs/vllm/bin/python bench/planted.py [RUNS] [CAUSE ...]`

The actors of examples/ray_rl on Ray and vLLM, started once. A run is a fleet of its own over some
steps, with one cause planted in every step or none. Each round has a run of each cause. Removing a
cause brings the median step of its run less that of the round's run without one.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

_ROOT = Path(__file__).parent.parent
_HERE = [str(_ROOT / "examples/ray_rl"), str(_ROOT / "bench")]
sys.path[:0] = _HERE
os.environ["PYTHONPATH"] = os.pathsep.join([*_HERE, os.environ.get("PYTHONPATH", "")])
os.environ |= {"RAY_raylet_start_wait_time_s": "120"}
# One cluster runs all of it, and Ray's full record of calls would take seconds of these cores.
os.environ |= {"RAY_task_events_max_num_task_in_gcs": "10000"}

import _causes  # noqa: E402 -- found by the path above
from _measure import machine  # noqa: E402 -- found by the path above

import on_vllm  # noqa: E402 -- found by the path above
import rlprof  # noqa: E402 -- found by the path above
import rlprof_ray  # noqa: E402 -- found by the path above
from train import QUESTIONS, ask, start_ray  # noqa: E402 -- found by the path above

CAUSES = ("none", "straggler", "replica", "tool", "tail", "sync", "gap", "gc", "data")
STEPS = 10
NEEDED = 19 / 20


class Bed:
    """The actors, alive for all runs."""

    def __init__(self, ray: Any, folder: Path) -> None:
        self.ray = ray
        roles = {role: {"ranks": "all"} for role in ("actor", "rollout", "agent")}
        config = {"tool": "none", "roles": roles}
        self.config = config
        model, meet = str(folder / "model"), f"file://{folder}/trainers"
        ray.get(ray.remote(on_vllm.prepare).remote(model))
        self.trainers = [
            ray.remote(_causes.PlantedTrainer).remote(rank, 2, meet, partial(on_vllm.Policy, model))
            for rank in range(2)
        ]
        replica = ray.remote(_causes.PlantedReplica).options(
            max_concurrency=_causes.PlantedReplica.concurrency,
            runtime_env={"env_vars": {**on_vllm.ENV}},
        )
        self.replicas = [
            replica.remote(model, max_num_seqs=seqs, max_model_len=512) for seqs in (8, 8, 4)
        ]
        ray.get([one.ready.remote() for one in self.replicas])
        self.agent = ray.remote(_causes.PlantedAgent).remote(self.replicas[:2])

    def run(self, cause: str, run_dir: Path) -> Path:
        """Train for some steps with *cause* planted; return the run folder."""
        ray = self.ray
        replicas = [self.replicas[0], self.replicas[2 if cause == "replica" else 1]]
        ray.get([
            *(one.plant.remote(cause, rank) for rank, one in enumerate(self.trainers)),
            *(one.plant.remote(cause) for one in self.replicas),
            self.agent.plant.remote(cause, replicas),
        ])  # fmt: skip
        _causes.fill(cause)
        with rlprof_ray.Fleet({**self.config, "run_dir": str(run_dir)}) as fleet:
            fleet.attach(actor=self.trainers, agent=[self.agent], rollout=replicas)
            for step in fleet.steps(range(1, STEPS + 1)):
                self._step(fleet, step, cause, replicas)
            return Path(fleet.run_dir)

    def _step(self, fleet: Any, step: int, cause: str, replicas: list[Any]) -> None:
        ray, questions = self.ray, ask(step)
        with fleet.phase("weight_sync"):
            weights = self.trainers[0].weights.remote()
            ray.get([replica.load.remote(weights) for replica in replicas])
        with fleet.phase("rollout"):
            keys, answers = zip(*ray.get(self.agent.rollout.remote(step, questions)), strict=True)
        with fleet.phase("reward"):
            rewards = ray.get(self.agent.judge.remote(step, questions, answers))
            if cause == "gc":
                gc.collect()
        if cause == "gap":
            time.sleep(_causes.GAP_S)
        with fleet.phase("log_prob"):
            ray.get([one.log_prob.remote(questions, keys) for one in self.trainers])
        with fleet.phase("update_actor"):
            ray.get([one.update.remote(questions, keys, rewards) for one in self.trainers])


def main() -> int:
    """Plant, ask why, and count."""
    from rlprof_report import analyse

    logging.basicConfig(level=logging.WARNING)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    causes = ("none", *sys.argv[2:]) if len(sys.argv) > 2 else CAUSES
    print(machine(), f"{rounds} rounds, {STEPS} steps, {QUESTIONS} trajectories a step")
    ray = start_ray()
    firsts: dict[str, Counter[str]] = defaultdict(Counter)
    steps: dict[str, list[float]] = defaultdict(list)
    bounds: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(ray, Path(folder))
        bed.run("none", Path(folder) / "warm")
        for number in range(rounds):
            plain = 0.0
            for cause in causes:
                home = Path(folder) / f"{number}-{cause}"
                began = time.monotonic()
                report = analyse(rlprof.read(bed.run(cause, home)))
                first = report.findings[0] if report.findings else None
                firsts[cause][first.cause if first else "none"] += 1
                took = median(step.seconds for step in report.steps[1:])
                if cause == "none":
                    plain = took
                gain, bound = took - plain, first.bound_s if first else 0.0
                steps[cause].append(took)
                if first and first.cause == cause:
                    bounds[cause].append(bound)
                said = first.title if first else report.verdict
                print(
                    f"{number:3} {cause:10} {took:6.2f} s/step, gain {gain:5.2f} s, "
                    f"bound {bound:5.2f} s, {time.monotonic() - began:4.1f} s: {said}",
                    flush=True,
                )
        ray.get([one.close.remote() for one in bed.replicas])
    ray.shutdown()
    return _verdict(firsts, steps, bounds, rounds)


def _verdict(
    firsts: dict[str, Counter[str]],
    steps: dict[str, list[float]],
    bounds: dict[str, list[float]],
    rounds: int,
) -> int:
    """Compare the median bound with the median gain: single runs differ by the machine's noise."""
    failed = 0
    for cause, seen in firsts.items():
        right = seen[cause]
        times_seen = ", ".join(f"{name} {times}" for name, times in seen.most_common())
        line = f"{cause:10} first in {right} of {rounds} ({times_seen})"
        if bounds[cause]:
            gain, bound = median(steps[cause]) - median(steps["none"]), median(bounds[cause])
            line += f"; bound {bound:.2f} s, gain {gain:.2f} s, ratio {bound / gain:.2f}"
        print(line)
        failed += right < NEEDED * rounds
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
