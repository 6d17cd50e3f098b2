"""Processes that are no actors: torchrun's workers join the fleet's run by its environment."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

import rlprof
import rlprof_ray
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import rows, train
from tests.ray_fleet.drivers import environment

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
        argv = [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            tmp_path / "worker.py", tmp_path / "profile.yaml",
        ]  # fmt: skip
        env = environment() | fleet.env | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(argv, env=env, capture_output=True, text=True)
        train(ray, fleet, [actor], (1, 2))

    assert done.returncode == 0, done.stderr[-2000:]
    run = rlprof.read(fleet.run_dir)
    assert run.problems == run.missing == ()
    names = {"2/update actor 0/1 whole", "2/score reward 0/2 whole", "2/score reward 1/2 whole"}
    assert set(rows(fleet)) == names
