"""Three actors on three raylets, each under nsys: `on_ray.py HOME NSYS`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


class Actor:
    """A rank that counts."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def update(self) -> float:
        return sum(number**0.5 for number in range(10_000)) + self.rank

    def facts(self) -> dict:
        return {
            "pid": os.getpid(),
            "executable": sys.executable,
            "under_nsys": "NSYS_PROFILING_SESSION_ID" in os.environ,
        }


def main(home: Path, nsys: str) -> None:
    import ray
    from ray.cluster_utils import Cluster

    import rlprof
    import rlprof_ray

    config = {
        "tool": "nsys", "steps": {"every": 1}, "run_dir": str(home / "runs"),
        "scratch_dir": str(home / "scratch"),
        "roles": {"actor": {"ranks": "all", "phases": ["update"]}},
        "tools": {"nsys": {"nsys": nsys, "trace": ["nvtx"], "start_s": 30}},
        "limits": {"start_timeout_s": 60},
    }  # fmt: skip
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "resources": {"n0": 1}})
    for number in (1, 2):
        cluster.add_node(num_cpus=2, resources={f"n{number}": 1})
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    try:
        fleet = rlprof_ray.Fleet(config)
        actors = [
            ray.remote(Actor)
            .options(resources={f"n{rank}": 1}, runtime_env=fleet.launch("actor", rank).runtime_env)
            .remote(rank)
            for rank in range(3)
        ]
        said = ray.get([actor.facts.remote() for actor in actors], timeout=120)
        values = []
        with fleet:
            fleet.attach(actor=actors)
            for _ in fleet.steps(range(1, 3)):
                with fleet.phase("update"):
                    values.append(ray.get([actor.update.remote() for actor in actors]))
        found = rlprof.read(fleet.run_dir)
        told = [
            {"who": str(one.target), "window": one.window.id, "state": one.state,
             "notes": list(one.notes), "unsupported": dict(one.unsupported)}
            for one in found.captures
        ]  # fmt: skip
        result = {"facts": said, "captures": told, "values": values}
        (home / "result.json").write_text(json.dumps(result))
        for actor in actors:
            ray.kill(actor)
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
