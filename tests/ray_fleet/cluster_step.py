"""A driver on a cluster of three raylets: run by test_cluster.py, as a process of its own."""

from __future__ import annotations

import json
import os
import sys
import time

os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")

import ray
from ray.cluster_utils import Cluster

import rlprof_ray
from tests.ray_fleet.actors import Trainer


def main() -> None:
    """Train three steps on the config given; a node goes in step 2."""
    config, out = json.loads(sys.argv[1]), {}
    memory = {"object_store_memory": 80 << 20}
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False, **memory}
    )
    nodes = [cluster.add_node(num_cpus=4, resources={f"node{n}": 8}, **memory) for n in (0, 1)]
    path = os.pathsep.join(filter(None, sys.path))
    ray.init(
        address=cluster.address, log_to_driver=False, logging_level="error",
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )  # fmt: skip

    def on(node, cls, *args):
        return ray.remote(num_cpus=0, resources={f"node{node}": 1})(cls).remote(*args)

    actors = [on(rank % 2, Trainer, rank) for rank in range(4)]
    totals = []
    with rlprof_ray.Fleet(config) as fleet:
        fleet.attach(actor=actors)
        out["run"] = str(fleet.run_dir)
        for step in fleet.steps((1, 2, 3)):
            with fleet.phase("update"):
                if step == 2:  # its window is open everywhere before a node goes
                    ray.get([actor.pid.remote() for actor in actors])
                refs = [actor.update.remote(step, 0.1) for actor in actors]
                if step == 2:
                    cluster.remove_node(nodes[1], allow_graceful=False)
                    for actor in actors[1::2]:
                        _wait_until_gone(actor)
                totals.append(ray.get(refs[::2]))
        began = time.monotonic()
    out["closed_s"] = time.monotonic() - began
    out["totals"] = totals
    print("OUT", json.dumps(out))
    ray.shutdown()
    cluster.shutdown()


def _wait_until_gone(actor) -> None:
    """Workers outlive their raylet for a while; Ray takes seconds to see it."""
    while True:
        try:
            ray.get(actor.pid.remote(), timeout=5)
        except ray.exceptions.RayActorError:
            return
        except ray.exceptions.GetTimeoutError:
            continue


if __name__ == "__main__":
    main()
