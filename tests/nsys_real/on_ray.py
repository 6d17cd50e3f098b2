"""Two actors of Ray, each under nsys: `on_ray.py HOME NSYS`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


class Actor:
    def update(self) -> float:
        return sum(number**0.5 for number in range(10_000))

    def facts(self) -> list:
        return [sys.executable, "NSYS_PROFILING_SESSION_ID" in os.environ]


def main(home: Path, nsys: str) -> None:
    import ray

    import rlprof
    import rlprof_ray

    config = {
        "tool": "nsys", "steps": {"every": 1}, "run_dir": str(home / "runs"),
        "scratch_dir": str(home / "scratch"),
        "roles": {"actor": {"ranks": "all", "phases": ["update"]}},
        "tools": {"nsys": {"nsys": nsys, "trace": ["nvtx"], "start_s": 30}},
        "limits": {"start_timeout_s": 60},
    }  # fmt: skip
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        fleet = rlprof_ray.Fleet(config)
        launches = [fleet.launch("actor", rank).runtime_env for rank in range(2)]
        actors = [ray.remote(Actor).options(runtime_env=one).remote() for one in launches]
        facts = ray.get([actor.facts.remote() for actor in actors], timeout=120)
        with fleet:
            fleet.attach(actor=actors)
            for _ in fleet.steps(range(1, 3)):
                with fleet.phase("update"):
                    values = ray.get([actor.update.remote() for actor in actors])
        told = [(str(one.target), one.window.id, one.state)
                for one in rlprof.read(fleet.run_dir).captures]  # fmt: skip
        result = {"facts": facts, "captures": told, "values": values}
        (home / "result.json").write_text(json.dumps(result))
        for actor in actors:
            ray.kill(actor)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
