"""`strict: true` in a fleet: what fails in a member is raised in the driver, once, by name."""

from __future__ import annotations

import pytest

import rlprof
import rlprof_ray
from rlprof_ray import Replica
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.faults import LIMITS, Server, bare, states, told, wait_until

pytestmark = pytest.mark.slow

ROLLOUT = {"rollout": {"ranks": "all", "engine": "mini", "phases": ["rollout"]}}


# failures.md: strict
def test_what_a_replica_raises_comes_to_the_driver(ray, spawn, config):
    """At the next thing it tells the fleet; other members have recorded their window."""
    servers = [spawn(Server), spawn(Server, "raises in start")]
    given = config(roles=ROLLOUT, strict=True, limits=LIMITS)

    fleet = rlprof_ray.Fleet(given)
    fleet.attach(rollout=[Replica(one, via="actor:engine") for one in servers])
    raised = []
    for step in (1, 2, 3):
        try:
            fleet.step(step)
            with fleet.phase("rollout"):
                ray.get([server.generate.remote() for server in servers])
        except rlprof.RlprofError as exc:
            raised.append((step, str(exc)))
            break
    fleet.close()

    ((step, words),) = raised
    assert step in (2, 3)  # it is raised once it is known
    assert words.startswith("rollout replica 1: start: ")
    assert "the engine is moody" in words
    found = told(fleet.run_dir)
    assert found["2/rollout rollout replica 0"].partition(":")[0] in ("whole", "failed")
    assert "the engine is moody" in found["2/rollout rollout replica 1"]
    assert not any(ray.get([server.is_profiling.remote() for server in servers]))


# failures.md: strict
def test_a_member_that_is_dead_is_raised_where_strict_asks_for_it(ray, spawn, config):
    """Not before its window, and not again at close."""
    actors = [spawn(Trainer, rank) for rank in (0, 1)]
    raised, out = [], []

    fleet = rlprof_ray.Fleet(config(strict=True, limits=LIMITS))
    fleet.attach(actor=actors)
    actors[1].die.remote()
    for step in (1, 2, 3):
        try:
            fleet.step(step)
            with fleet.phase("update"):
                out += ray.get([actors[0].update.remote(step)])
            if step == 2:
                wait_until(lambda: "2/update actor 1/2" in told(fleet.run_dir))
        except rlprof.RlprofError as exc:
            raised.append((step, str(exc)))
            out += ray.get([actors[0].update.remote(step)])
            break
    fleet.close()

    assert [[total] for total in out] == bare((0,), (1, 2, 3))[: len(out)]
    assert states(fleet.run_dir)["2/update actor 0/2"] == "whole"
    ((step, words),) = raised
    assert step in (2, 3)  # it is raised once it is known
    assert words.startswith("actor 1/2: start: ActorDiedError")


# failures.md: strict
def test_a_member_that_cannot_follow_is_raised_by_attach(ray, spawn, config):
    """Before the first step, and by name."""
    actors = [spawn(Trainer), spawn(Trainer, 1, resources={"nowhere": 1})]
    limits = LIMITS | {"configure_timeout_s": 3}
    ray.get(actors[0].pid.remote())

    fleet = rlprof_ray.Fleet(config(strict=True, limits=limits))
    with pytest.raises(rlprof.RlprofError, match=r"^actor 1/2: configure: was not answered"):
        fleet.attach(actor=actors)
    fleet.close()

    assert bare((0,), (1,)) == [ray.get([actors[0].update.remote(1)])]
