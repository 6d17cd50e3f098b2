"""Processes that are no actors: torchrun's workers join the fleet's run by its environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

import rlprof
import rlprof_ray
from tests.ray_fleet.actors import Trainer

pytestmark = pytest.mark.slow

WORKER = """
import sys
import rlprof

with rlprof.open(sys.argv[1], role="reward") as prof:
    for step in prof.steps((1, 2)):
        with prof.phase("score"):
            sum(range(1000))
"""


def test_workers_of_torchrun_are_part_of_the_run(ray, spawn, config, tmp_path):
    """They record the same steps as the actors, into the same folder, by their own sessions."""
    roles = {"actor": {"phases": ["update"]}, "reward": {"ranks": "all", "phases": ["score"]}}
    given = config(steps=[2], roles=roles)
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "profile.yaml").write_text(yaml.safe_dump(given))
    actor = spawn(Trainer)

    with rlprof_ray.Fleet(tmp_path / "profile.yaml") as fleet:
        fleet.attach(actor=[actor])
        path = os.pathsep.join(filter(None, sys.path))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
                *("--nproc-per-node", "2"),
                *(tmp_path / "worker.py", tmp_path / "profile.yaml"),
            ],
            env=os.environ | fleet.env | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        for step in fleet.steps((1, 2)):
            with fleet.phase("update"):
                ray.get(actor.update.remote(step))

    assert done.returncode == 0, done.stderr[-2000:]
    run = rlprof.read(fleet.run_dir)
    assert run.problems == run.missing == ()
    assert {
        (one.window.id, str(one.target), one.state) for one in run.captures
    } == {
        ("2/update", "actor 0/1", "whole"),
        ("2/score", "reward 0/2", "whole"),
        ("2/score", "reward 1/2", "whole"),
    }  # fmt: skip
