"""One real Ray for all tests of the fleet; actors are ordinary classes."""

from __future__ import annotations

import os
import sys

import pytest

import rlprof

CONFIG = {
    "tool": "stacks",
    "steps": [2, 3],
    "roles": {"actor": {"ranks": "all", "phases": ["update"]}},
    "calibrate": False,
}


@pytest.fixture(scope="session", name="ray")
def _ray():
    """Start Ray; workers import what this process can import."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
    import ray

    path = os.pathsep.join(filter(None, sys.path))
    ray.init(
        num_cpus=8, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20,
        logging_level="error", runtime_env={"env_vars": {"PYTHONPATH": path}},
    )  # fmt: skip
    yield ray
    ray.shutdown()


@pytest.fixture(name="config")
def _config(tmp_path):
    """Return a function that makes a config; its runs and raw data are the test's own."""

    def make(**changes):
        places = {"run_dir": str(tmp_path / "runs"), "scratch_dir": str(tmp_path / "scratch")}
        return CONFIG | places | changes

    return make


@pytest.fixture(name="spawn")
def _spawn(ray):
    """Return a function that starts actors of a class, and end them after the test."""
    actors = []

    def spawn(cls, *args, **options):
        actor = ray.remote(num_cpus=0, **options)(cls).remote(*args)
        actors.append(actor)
        return actor

    yield spawn
    for actor in actors:
        ray.kill(actor)


def rows(fleet):
    """Say what became of each capture of a fleet's run."""
    run = rlprof.read(fleet.run_dir)
    return [f"{one.window.id} {one.target} {one.state}" for one in run.captures]
