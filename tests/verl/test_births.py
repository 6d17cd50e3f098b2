"""How training workers are born, on classes that make them as verl's do; no Ray, no verl."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from rlprof.config import check_config
from rlprof_verl._births import launched


class RayClassWithInitArgs:
    """A class with what Ray is asked for; verl updates it for each worker."""

    def __init__(self):
        self.asked = []

    def update_options(self, options):
        self.asked.append(options)


class RayWorkerGroup:
    """Asks for its workers as verl 0.8 to 0.9 do."""

    def __init__(self, pool, made):
        for rank in range(2):
            self._create_worker(
                rank=rank, resource_pool=pool, ray_cls_with_init=made, detached=False
            )

    def _create_worker(self, rank, resource_pool, ray_cls_with_init, detached):
        env = {"env_vars": {"RANK": str(rank)}}
        ray_cls_with_init.update_options({"runtime_env": env, "name": f"worker {rank}"})


@pytest.fixture(name="_verl", autouse=True)
def _stand_in(monkeypatch):
    """Have verl's module hold the class above."""
    name = "verl.single_controller.ray.base"
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(RayWorkerGroup=RayWorkerGroup))


def born(role, *, tool="nsys", pools=("actor_rollout_ref",), groups=("actor_rollout_ref",)):
    """Make *groups* of two workers, whose pools hold the names *pools*; return their options."""
    config, _ = check_config({"tool": tool, "steps": [2], "roles": {role: {"ranks": [1]}}})
    trainer = SimpleNamespace(resource_pool_to_cls={name: {name: None} for name in pools})
    made = RayClassWithInitArgs()
    own = RayWorkerGroup._create_worker
    with launched(trainer, config):
        for group in groups:
            RayWorkerGroup(group, made)
    assert RayWorkerGroup._create_worker is own
    return made.asked


def under_nsys(asked):
    """Say for each worker the name that nsys knows it by; empty: it starts as in verl."""
    commands = [one["runtime_env"].get("py_executable", "") for one in asked]
    return [one.partition('"name": "')[2].partition('"')[0] for one in commands]


def test_a_chosen_rank_starts_under_nsys():
    """The other one starts as in verl, and each keeps verl's variables and name."""
    asked = born("actor")

    assert under_nsys(asked) == ["", "actor-1"]
    assert [one["runtime_env"]["env_vars"] for one in asked] == [{"RANK": "0"}, {"RANK": "1"}]
    assert [one["name"] for one in asked] == ["worker 0", "worker 1"]


def test_a_critic_of_its_own_pool_is_named_as_one():
    """Workers of the actor are not touched by what the critic's tool needs."""
    names = ("actor_rollout", "critic")

    assert under_nsys(born("critic", pools=names, groups=names)) == ["", "", "", "critic-1"]


def test_replicas_that_follow_in_the_pool_start_as_in_verl():
    """Verl makes groups for rollouts, too, in a pool of the actor or in one of their own."""
    twice = ("actor_rollout", "actor_rollout", "standalone")

    found = born("actor", pools=twice[:1], groups=twice)

    assert under_nsys(found) == ["", "actor-1", "", "", "", ""]


def test_a_tool_without_needs_changes_nothing(monkeypatch):
    """Verl's class is not even looked up."""
    monkeypatch.delitem(sys.modules, "verl.single_controller.ray.base")

    assert under_nsys(born("actor", tool="torch")) == ["", ""]
