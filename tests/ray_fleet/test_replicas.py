"""Rollout replicas: real engines with processes of their own, reached in each way there is."""

from __future__ import annotations

from contextlib import suppress

import pytest

import rlprof
import rlprof_ray
from rlprof_ray import Replica
from tests.ray_fleet import faults
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import rows
from tests.ray_fleet.faults import LIMITS, bare, states

pytestmark = pytest.mark.slow

ROLES = {
    "actor": {"ranks": "all", "phases": ["update"]},
    "rollout": {"ranks": "all", "engine": "mini", "phases": ["rollout"]},
}


class Server(faults.Server):
    """An actor that keeps an engine, as verl's servers do."""

    def __init__(self):
        from mini_engine import Engine

        self.engine = Engine(profiler=True)

    def generate(self, prompts):
        return self.engine.generate(prompts)


def test_replicas_in_actors_are_recorded_beside_the_trainers(spawn, config, trained):
    """By the actor's attribute, plain or threaded: one run has all windows."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]
    servers = [spawn(Server, max_concurrency=calls) for calls in (1, 3)]

    replicas = [Replica(one, via="actor:engine", coordinates={"tp": 2}) for one in servers]
    given = config(steps=[2], roles=ROLES)
    fleet, _ = trained(given, actors, servers=servers, rollout=replicas)

    run = rlprof.read(fleet.run_dir)
    names = ("rollout rollout replica 0", "rollout rollout replica 1")
    names += ("update actor 0/2", "update actor 1/2")
    assert rows(fleet) == [f"2/{name} whole" for name in names]
    assert [one.target.rank for one in run.captures[:2]] == [0, 2]
    assert run.problems == ()


def test_a_failing_step_leaves_no_profiler_open(ray, spawn, config):
    """Its window ends with the exception of the driver, and the next step is recorded."""
    actors, server = [spawn(Trainer, rank) for rank in (0, 1)], spawn(Server)
    out = []

    with rlprof_ray.Fleet(config(roles=ROLES, limits=LIMITS)) as fleet:
        fleet.attach(actor=actors, rollout=[Replica(server, via="actor:engine")])
        for step in fleet.steps((1, 2, 3)):
            with fleet.phase("rollout"):
                ray.get(server.generate.remote(["1 + 1 ="]))
            with suppress(ValueError), fleet.phase("update"):
                out.append(ray.get([actor.update.remote(step) for actor in actors]))
                if step == 2:
                    raise ValueError("the loss is nan")
        is_open = ray.get(server.is_profiling.remote())
        assert not fleet.is_recording

    assert bare((0, 1), (1, 2, 3)) == out
    assert not is_open
    names = ("update actor 0/2", "update actor 1/2", "rollout rollout replica 0")
    assert states(fleet.run_dir) == {f"{step}/{name}": "whole" for step in (2, 3) for name in names}


class Still(Server):
    """It has no engine to start: windows on it fail."""

    def __init__(self):
        self.engine = None


def test_ranks_are_global_and_choose_replicas(spawn, config, trained):
    """With two GPUs a replica, rank 2 is in the second one, and rank 5 in the third."""
    rollout = {"ranks": [2, 5], "engine": "mini", "phases": ["rollout"]}
    replicas = [Replica(spawn(Still), "actor:engine", coordinates={"tp": 2}) for _ in range(3)]

    given = config(steps=[1], roles={"rollout": rollout})
    fleet, _ = trained(given, None, (1,), [], rollout=replicas)

    assert [one.target.replica for one in rlprof.read(fleet.run_dir).captures] == [1, 2]


def test_each_replica_is_launched_with_a_folder_of_its_own(tmp_path):
    """By the rank it holds; else vLLM's own profilers would write over each other's files."""
    given = {"run_dir": str(tmp_path), "tool": "torch", "steps": [1],
             "roles": {"rollout": {"ranks": "all", "engine": "vllm"}}}  # fmt: skip

    with rlprof_ray.Fleet(given) as fleet:
        found = [fleet.launch("rollout", rank).engine_args["profiler_config"] for rank in (0, 1)]

    assert [one["torch_profiler_dir"].rpartition("/")[2] for one in found] == [
        "rollout_0", "rollout_1",
    ]  # fmt: skip
