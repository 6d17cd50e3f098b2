"""One real Ray for all tests of the fleet; actors are ordinary classes."""

import gc
import os
import sys
import warnings
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import rlprof
from rlprof_ray._history import TOLD
from tests.core.distributions import offer
from tests.ray_fleet.actors import AsyncTrainer, Trainer

ROOT = Path(__file__).parents[2]
LENT = {
    "stacks": ("tools", "rlprof_stacks:Stacks", "third_party_tool"),
    "mini": ("engines", "rlprof_mini:Mini", "third_party_engine"),
    "mini_engine": ("engines", "rlprof_mini:Mini", "third_party_engine"),
    "awaiting": ("engines", "tests.ray_fleet.awaiting:Awaiting", "third_party_engine"),
    "driving": ("engines", "tests.ray_fleet.awaiting:Driving", "third_party_engine"),
    "bound": ("tools", "tests.ray_fleet.awaiting:Bound", "third_party_tool"),
}
"""The examples as installed distributions: entry point group, target and folder."""
KEPT = (Trainer, AsyncTrainer)
"""Classes whose actors are reused by later tests; only a session may remain in them."""
IDLE = defaultdict(list)
"""Idle actors of earlier tests, by class and threads; a new actor takes seconds to start."""
ACTOR = {"ranks": "all", "phases": ["update"]}
ROLES = {"actor": ACTOR, "rollout": {"ranks": "all", "engine": "mini", "phases": ["rollout"]}}
CONFIG = {
    "tool": "stacks",
    "steps": [2, 3],
    "roles": {"actor": ACTOR},
    "limits": {"start_timeout_s": 60},  # CI's machine also runs another lane
}


@pytest.fixture(scope="session", name="lent")
def _lent(tmp_path_factory):
    """Make a folder in which the examples are installed; return what to add to sys.path."""
    site = tmp_path_factory.mktemp("site")
    for name, (group, target, _) in LENT.items():
        offer(site, name, f"[rlprof.{group}]\n{name} = {target}\n", version="0.1.0")
    sources = [ROOT / "examples" / folder / "src" for _, _, folder in LENT.values()]
    return [str(site), *map(str, sources), str(ROOT / "plugins/timeline/src")]


@pytest.fixture(autouse=True)
def _with_examples(lent, monkeypatch):
    """Make the examples importable in this process for one test."""
    for folder in lent:
        monkeypatch.syspath_prepend(folder)


@pytest.fixture(scope="session", name="ray")
def _ray(lent):
    """Start Ray; workers import what this process can import."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
    os.environ[TOLD] = "100"  # closing a fleet waits at least this long
    import ray

    path = os.pathsep.join([*lent, *filter(None, sys.path), str(ROOT)])
    ray.init(
        address="local",  # else Ray may join the cluster of another user
        num_cpus=8, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20,
        logging_level="error", runtime_env={"env_vars": {"PYTHONPATH": path}},
    )  # fmt: skip
    yield ray
    ray.shutdown()
    warnings.simplefilter("ignore", ResourceWarning)  # Ray waits a second for what it kills
    gc.collect()


@pytest.fixture(name="config")
def _config(config):
    """Return a function that makes a config with run and scratch folders of the test's own."""
    return lambda **changes: config(**CONFIG | changes)


@pytest.fixture(name="spawn")
def _spawn(ray):
    """Return a function that starts actors of a class, and end or keep them after the test."""
    idle, used = IDLE, []

    def spawn(cls, *args, max_concurrency=1, **options):
        kind = cls, max_concurrency
        if idle[kind] and not options:
            actor = idle[kind].pop()
            ray.get(actor.__ray_call__.remote(cls.__init__, *args))
        else:
            threads = {} if max_concurrency == 1 else {"max_concurrency": max_concurrency}
            actor = ray.remote(num_cpus=0, **threads, **options)(cls).remote(*args)
        used.append((actor, kind, options))
        return actor

    yield spawn
    kept = [(actor, kind) for actor, kind, options in used if kind[0] in KEPT and not options]
    free = [actor.__ray_call__.remote(_follows) for actor, _ in kept]
    ready, _ = ray.wait(free, num_returns=len(free), timeout=1) if free else ([], [])
    for ref, (actor, kind) in zip(free, kept, strict=True):
        with suppress(ray.exceptions.RayError):
            if ref in ready and not ray.get(ref):
                idle[kind].append(actor)
    for actor, kind, _ in used:
        if actor not in idle[kind]:
            ray.kill(actor)


def _follows(actor):
    inside = sys.modules.get("rlprof_ray._inside")
    return bool(inside and inside._followers)


@pytest.fixture(name="actors")
def _actors(spawn):
    """Spawn two trainers, ranks 0 and 1."""
    return [spawn(Trainer, rank) for rank in (0, 1)]


@contextmanager
def attached(config, **members):
    """Open a fleet with *members*."""
    import rlprof_ray

    with rlprof_ray.Fleet(config) as fleet:
        fleet.attach(**members)
        yield fleet


def train(ray, fleet, actors, steps, servers=None):
    """Let *servers* generate in `rollout` and *actors* train in `update`; return the results."""
    out = []
    for step in fleet.steps(steps):
        if servers is not None:
            with fleet.phase("rollout"):
                ray.get([server.generate.remote(["1 + 1 ="]) for server in servers])
        if actors is not None:
            with fleet.phase("update"):
                out.append(ray.get([actor.update.remote(step) for actor in actors]))
    return out


@pytest.fixture(name="trained")
def _trained(ray):
    """Return a function that trains to the end with a fleet and returns the fleet and the sums."""

    def trained(config, actors, steps=(1, 2), servers=None, **more):
        actor = {} if actors is None else {"actor": iter(actors)}  # any iterable will do
        with attached(config, **actor, **more) as fleet:
            return fleet, train(ray, fleet, actors, steps, servers)

    return trained


def own_spans(fleet):
    """Return the spans of programs, without those of Ray's record and of the garbage collector."""
    spans = rlprof.read(fleet.run_dir).spans()
    return [span for span in spans if span.attributes.get("source") != "ray" and span.name != "gc"]


def rows(fleet):
    run = rlprof.read(fleet.run_dir)
    return [f"{one.window.id} {one.target} {one.state}" for one in run.captures]
