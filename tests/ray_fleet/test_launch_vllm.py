"""What a fleet gives vLLM replicas to be born with."""

from __future__ import annotations

import rlprof_ray


def test_each_replica_is_launched_with_a_folder_of_its_own(tmp_path):
    """By the rank it holds; else vLLM's own profilers would write over each other's files."""
    given = {"run_dir": str(tmp_path), "tool": "torch", "steps": [1],
             "roles": {"rollout": {"ranks": "all", "engine": "vllm"}}}  # fmt: skip

    with rlprof_ray.Fleet(given) as fleet:
        found = [fleet.launch("rollout", rank).engine_args["profiler_config"] for rank in (0, 1)]

    assert [one["torch_profiler_dir"].rpartition("/")[2] for one in found] == [
        "rollout_0", "rollout_1",
    ]  # fmt: skip
