"""Two workers of verl's own making on Ray, one under nsys: `workers.py HOME NSYS`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import ray
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, register
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from verl.single_controller.ray.base import create_colocated_worker_cls

from rlprof.config import check_config
from rlprof_ray import Fleet
from rlprof_verl._births import launched


class Actor(Worker):
    """A rank that works, and reports how it was started."""

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    async def update_actor(self) -> tuple[int, bool, str]:
        sum(number**0.5 for number in range(100_000))
        return self.rank, "NSYS_PROFILING_SESSION_ID" in os.environ, os.environ["WG_BACKEND"]


def main(home: Path, nsys: str) -> None:
    """Record rank 1 in step 2 of three."""
    config, _ = check_config({
        "tool": "nsys", "steps": [2], "run_dir": str(home / "runs"),
        "scratch_dir": str(home / "scratch"),
        "roles": {"actor": {"ranks": [1], "phases": ["update_actor"]}},
        "tools": {"nsys": {"nsys": nsys, "trace": ["nvtx"], "start_s": 30}},
        "limits": {"start_timeout_s": 60},
    })  # fmt: skip
    ray.init(num_cpus=64, include_dashboard=False, log_to_driver=False)
    pool = RayResourcePool([2], use_gpu=False)
    made = {"actor_rollout": RayClassWithInitArgs(ray.remote(Actor))}
    with launched(SimpleNamespace(resource_pool_to_cls={pool: made}), config):
        group = RayWorkerGroup(pool, create_colocated_worker_cls(made), device_name="cpu")
    actors = group.spawn({"actor_rollout"})["actor_rollout"]
    with Fleet(config) as fleet:
        fleet.attach(actor=actors.workers)
        for _ in fleet.steps(range(1, 4)):
            with fleet.phase("update_actor"):
                said = actors.update_actor()
    (home / "said.json").write_text(json.dumps(said))
    ray.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
