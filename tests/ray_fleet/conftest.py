"""One real Ray for all tests of the fleet; actors are ordinary classes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import rlprof
from rlprof_ray._history import TOLD

ROOT = Path(__file__).parents[2]
LENT = {
    "stacks": ("tools", "rlprof_stacks:Stacks", "third_party_tool"),
    "mini": ("engines", "rlprof_mini:Mini", "third_party_engine"),
    "mini_engine": ("engines", "rlprof_mini:Mini", "third_party_engine"),
    "awaiting": ("engines", "tests.ray_fleet.awaiting:Awaiting", "third_party_engine"),
    "driving": ("engines", "tests.ray_fleet.awaiting:Driving", "third_party_engine"),
}
"""The examples, as if pip had installed them: what they offer, and where they lie."""
CONFIG = {
    "tool": "stacks",
    "steps": [2, 3],
    "roles": {"actor": {"ranks": "all", "phases": ["update"]}},
    "limits": {"start_timeout_s": 60},  # CI's machine is busy with another lane
}


@pytest.fixture(scope="session", name="lent")
def _lent(tmp_path_factory):
    """Make a folder in which the examples are installed; return what to add to sys.path."""
    site = tmp_path_factory.mktemp("site")
    for name, (group, target, _) in LENT.items():
        info = site / f"{name}-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text(f"[rlprof.{group}]\n{name} = {target}\n")
    sources = [ROOT / "examples" / folder / "src" for _, _, folder in LENT.values()]
    return [str(site), *map(str, sources), str(ROOT / "plugins/timeline/src")]


@pytest.fixture(autouse=True)
def _with_examples(lent, monkeypatch):
    """Let this process find them, for the time of a test."""
    for folder in lent:
        monkeypatch.syspath_prepend(folder)


@pytest.fixture(scope="session", name="ray")
def _ray(lent):
    """Start Ray; workers import what this process can import."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
    os.environ[TOLD] = "100"  # closing a fleet waits for so long
    import ray

    path = os.pathsep.join([*lent, *filter(None, sys.path), str(ROOT)])
    ray.init(
        address="local",  # else a cluster that somebody else tests with
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


def train(ray, fleet, actors, steps):
    """Train in the phase `update`; return what came out of each step."""
    out = []
    for step in fleet.steps(steps):
        with fleet.phase("update"):
            out.append(ray.get([actor.update.remote(step) for actor in actors]))
    return out


def own_spans(fleet):
    """Return the spans that programs wrote: none of Ray's record, none of the garbage collector."""
    spans = rlprof.read(fleet.run_dir).spans()
    return [span for span in spans if span.attributes.get("source") != "ray" and span.name != "gc"]


def rows(fleet):
    """Say what became of each capture of a fleet's run."""
    run = rlprof.read(fleet.run_dir)
    return [f"{one.window.id} {one.target} {one.state}" for one in run.captures]
