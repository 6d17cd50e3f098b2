"""A driver process that tests run: it ends in a given way, or meets another driver."""

import json
import os
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")

import ray
from ray import shutdown

import rlprof_ray
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.faults import answers
from tests.waiting import wait_until

LOCAL = {"num_cpus": 4, "include_dashboard": False, "object_store_memory": 80 << 20}
NAMESPACE = "faults"
TRAINED = []
"""Handles of the actors; without one they would end with `main`, before a fleet closes at exit."""


def connect(address) -> None:
    """Connect to Ray at *address*; workers import what this process can import."""
    path = os.pathsep.join(filter(None, sys.path))
    ray.init(
        address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="error",
        runtime_env={"env_vars": {"PYTHONPATH": path}}, **(LOCAL if address == "local" else {}),
    )  # fmt: skip


def say(**what) -> None:
    """Print a line for the test and flush it, since the process may end abruptly."""
    print("OUT", json.dumps(what), flush=True)


def end(how: str) -> None:
    """End this driver in the given way."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exits":
        sys.exit(3)
    if how == "raises":
        raise RuntimeError("a step has failed")
    if how == "shuts Ray down":
        ray.shutdown()
    if how == "shuts Ray down by another name":  # rlprof gets no call before it
        shutdown()


def actors(spec):
    """Start two actors, or find those another driver has started."""
    if spec["find"]:
        return [ray.get_actor(name) for name in spec["names"]]
    options = {"lifetime": "detached"} if spec["detached"] else {}
    make = ray.remote(num_cpus=0, **options)(Trainer)
    return [make.options(name=name).remote(rank) for rank, name in enumerate(spec["names"])]


def written(config, event) -> int:
    """Count the lines of an event that the two actors have written, one for each window."""
    folder = Path(config.get("fleet", {}).get("node_dir") or config["run_dir"])
    files = folder.rglob("manifest/actor-*.jsonl")
    return sum(one.read_text().count(f'"event":"{event}"') for one in files)


def lose_a_node(config) -> None:
    """Train three steps on a cluster of three raylets; one node is removed in step 2."""
    from ray.cluster_utils import Cluster

    memory = {"object_store_memory": 80 << 20}
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False, **memory}
    )
    connect(cluster.address)  # first, so that the driver's own raylet is not removed
    nodes = [cluster.add_node(num_cpus=4, resources={f"node{n}": 8}, **memory) for n in (0, 1)]
    trained = [
        ray.remote(num_cpus=0, resources={f"node{rank % 2}": 1})(Trainer).remote(rank)
        for rank in range(4)
    ]
    totals = []
    with rlprof_ray.Fleet(config) as fleet:
        fleet.attach(actor=trained)
        for step in fleet.steps((1, 2, 3)):
            with fleet.phase("update"):
                if step == 2:  # its window is open everywhere before a node is removed
                    ray.get([actor.pid.remote() for actor in trained])
                refs = [actor.update.remote(step, 0.1) for actor in trained]
                if step == 2:
                    cluster.remove_node(nodes[1], allow_graceful=False)
                    for actor in trained[1::2]:
                        wait_until(lambda actor=actor: answers(ray, actor) is False)
                totals.append(ray.get(refs[::2]))
        began = time.monotonic()
    say(run=str(fleet.run_dir), closed_s=time.monotonic() - began, totals=totals)
    ray.shutdown()
    cluster.shutdown()


def main() -> None:
    """Train three steps as the spec says, and end."""
    spec = json.loads(sys.argv[1])
    if "loses a node" in spec:
        lose_a_node(spec["loses a node"])
        return
    how, where = spec["end"], spec["where"]
    windows = 2 * len(spec["config"]["steps"])
    connect(spec["address"])
    TRAINED.extend(trained := actors(spec))
    fleet = rlprof_ray.Fleet(spec["config"])
    fleet.attach(actor=trained)
    say(run=str(fleet.run_dir))
    with fleet if spec["with"] else nullcontext():
        for step in fleet.steps((1, 2, 3)):
            with fleet.phase("update"):
                say(total=ray.get([one.update.remote(step, 0.1) for one in trained]))
                if (step, where) == (3, "in"):
                    wait_until(lambda: written(spec["config"], "started") == windows)
                    end(how)
                    break
        if where == "after":
            fleet.session.scribe.flush()
            wait_until(lambda: written(spec["config"], "exported") == windows)
            end(how)
        began = time.monotonic()
    if spec["with"]:
        say(closed_s=time.monotonic() - began)


if __name__ == "__main__":
    main()
