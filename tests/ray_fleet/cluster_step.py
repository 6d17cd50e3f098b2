"""A driver on a cluster of three raylets: run by test_machines.py, as a process of its own."""

import json
import sys
import time

from tests.ray_fleet.driver import connect, ray, say  # isort: skip -- sets Ray's environment
from ray.cluster_utils import Cluster

import rlprof_ray
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.faults import answers
from tests.waiting import wait_until


def main() -> None:
    """Train three steps on the config given; a node goes in step 2."""
    config = json.loads(sys.argv[1])
    memory = {"object_store_memory": 80 << 20}
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False, **memory}
    )
    nodes = [cluster.add_node(num_cpus=4, resources={f"node{n}": 8}, **memory) for n in (0, 1)]
    connect(cluster.address)

    def on(node, cls, *args):
        return ray.remote(num_cpus=0, resources={f"node{node}": 1})(cls).remote(*args)

    actors = [on(rank % 2, Trainer, rank) for rank in range(4)]
    totals = []
    with rlprof_ray.Fleet(config) as fleet:
        fleet.attach(actor=actors)
        for step in fleet.steps((1, 2, 3)):
            with fleet.phase("update"):
                if step == 2:  # its window is open everywhere before a node goes
                    ray.get([actor.pid.remote() for actor in actors])
                refs = [actor.update.remote(step, 0.1) for actor in actors]
                if step == 2:
                    cluster.remove_node(nodes[1], allow_graceful=False)
                    for actor in actors[1::2]:
                        wait_until(lambda actor=actor: answers(ray, actor) is False)
                totals.append(ray.get(refs[::2]))
        began = time.monotonic()
    say(run=str(fleet.run_dir), closed_s=time.monotonic() - began, totals=totals)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
