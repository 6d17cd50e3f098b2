"""Rollout replicas: real engines with processes of their own, reached in each way there is."""

from __future__ import annotations

import pytest

import rlprof
import rlprof_ray
from rlprof_ray import Replica
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import rows

pytestmark = pytest.mark.slow

ROLES = {
    "actor": {"ranks": "all", "phases": ["update"]},
    "rollout": {"ranks": "all", "engine": "mini", "phases": ["rollout"]},
}


class Server:
    """An actor that keeps an engine, as verl's servers do."""

    def __init__(self):
        from mini_engine import Engine

        self.engine = Engine(profiler=True)

    def generate(self, prompts):
        return self.engine.generate(prompts)

    def is_profiling(self):
        return self.engine.is_profiling()

    def start_profile(self, folder):
        self.engine.start_profile(folder)

    def stop_profile(self):
        self.engine.stop_profile()


def train(ray, fleet, actors, servers):
    for step in fleet.steps((1, 2)):
        with fleet.phase("rollout"):
            texts = ray.get([server.generate.remote(["1 + 1 ="]) for server in servers])
        with fleet.phase("update"):
            ray.get([actor.update.remote(step) for actor in actors])
    return texts


@pytest.mark.parametrize(("via", "calls"), [("actor:engine", 3), ("methods", 1)])
def test_replicas_in_actors_are_recorded_beside_the_trainers(ray, spawn, config, via, calls):
    """By the actor's attribute or by its methods, plain or threaded: one run has all windows."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]
    servers = [spawn(Server, max_concurrency=calls) for _ in (0, 1)]

    with rlprof_ray.Fleet(config(steps=[2], roles=ROLES)) as fleet:
        replicas = [Replica(server, via=via, coordinates={"tp": 2}) for server in servers]
        fleet.attach(actor=actors, rollout=replicas)
        train(ray, fleet, actors, servers)

    run = rlprof.read(fleet.run_dir)
    assert rows(fleet) == [
        "2/rollout rollout replica 0 whole",
        "2/rollout rollout replica 1 whole",
        "2/update actor 0/2 whole",
        "2/update actor 1/2 whole",
    ]
    assert [one.target.rank for one in run.captures[:2]] == [0, 2]
    assert run.problems == ()


def test_a_replica_of_the_driver_is_recorded(ray, spawn, config):
    """An engine the driver itself holds is attached as in a single process."""
    from mini_engine import Engine

    actors = [spawn(Trainer)]
    with Engine(profiler=True) as engine, rlprof_ray.Fleet(config(steps=[2], roles=ROLES)) as fleet:
        fleet.attach(actor=actors, rollout=[engine])
        for step in fleet.steps((1, 2)):
            with fleet.phase("rollout"):
                engine.generate(["1 + 1 ="])
            with fleet.phase("update"):
                ray.get(actors[0].update.remote(step))

    assert rows(fleet) == ["2/rollout rollout replica 0 whole", "2/update actor 0/1 whole"]


def test_ranks_are_global_and_choose_replicas(spawn, config):
    """With two GPUs a replica, rank 2 is in the second one, and rank 5 in the third."""
    rollout = {"ranks": [2, 5], "engine": "mini", "phases": ["rollout"]}
    servers = [spawn(Server) for _ in range(3)]

    with rlprof_ray.Fleet(config(steps=[1], roles={"rollout": rollout})) as fleet:
        fleet.attach(
            rollout=[Replica(one, via="actor:engine", coordinates={"tp": 2}) for one in servers]
        )
        for _ in fleet.steps((1,)):
            with fleet.phase("rollout"):
                pass

    run = rlprof.read(fleet.run_dir)
    assert [one.target.replica for one in run.captures] == [1, 2]


def test_a_rank_outside_every_replica_is_an_error_before_the_run(config):
    """Two replicas of two ranks have no rank 4."""
    rollout = {"ranks": [4], "engine": "mini"}

    with (
        rlprof_ray.Fleet(config(roles={"rollout": rollout})) as fleet,
        pytest.raises(rlprof.ConfigError, match="rank 4 does not exist among 4 ranks"),
    ):
        fleet.attach(rollout=[Replica(None, coordinates={"tp": 2}) for _ in (0, 1)])


def test_an_unknown_way_is_refused_at_once():
    """The error lists the ways there are."""
    with pytest.raises(ValueError, match="expected object, url, methods or actor:ATTRIBUTE"):
        Replica(None, via="telepathy")
