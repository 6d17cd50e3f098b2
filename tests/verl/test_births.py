"""How training workers start, on classes that make them as verl's do; no Ray, no verl."""

import sys
from types import SimpleNamespace

import pytest

from rlprof.config import check_config
from rlprof_verl._births import launched
from tests.cases import cases


class RayClassWithInitArgs:
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
    """Return the name of each worker in nsys; empty: it starts as in verl."""
    commands = [one["runtime_env"].get("py_executable", "") for one in asked]
    return [one.partition('"name": "')[2].partition('"')[0] for one in commands]


@cases(
    "role, pools, groups, names",
    ("actor", ["actor_rollout_ref"], ["actor_rollout_ref"], ["", "actor-1"]),
    ("critic", ["actor_rollout", "critic"], ["actor_rollout", "critic"],
     ["", "", "", "critic-1"]),
    ("actor", ["actor_rollout"], ["actor_rollout", "actor_rollout", "standalone"],
     ["", "actor-1", "", "", "", ""]),
    ids=["one pool", "critic of its own pool", "replicas follow in the pool"],
)  # fmt: skip
def test_a_chosen_rank_starts_under_nsys(role, pools, groups, names):
    """Only a chosen rank starts under nsys; every worker keeps verl's variables and name."""
    asked = born(role, pools=pools, groups=groups)

    assert under_nsys(asked) == names
    ranks = [str(number % 2) for number in range(len(names))]
    assert [one["runtime_env"]["env_vars"] for one in asked] == [{"RANK": one} for one in ranks]
    assert [one["name"] for one in asked] == [f"worker {one}" for one in ranks]


def test_a_tool_without_needs_changes_nothing(monkeypatch):
    """For a tool that needs no launch, workers start as in verl, whose class is not looked up."""
    monkeypatch.delitem(sys.modules, "verl.single_controller.ray.base")

    assert under_nsys(born("actor", tool="torch")) == ["", ""]
