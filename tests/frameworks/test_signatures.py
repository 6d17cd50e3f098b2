"""The actors of each framework that was read are those that `rlprof attach` knows."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from rlprof_ray.attaching import found
from rlprof_ray.attaching.frameworks import KINDS, kind_of
from rlprof_ray.attaching.look import Look, question
from tests.frameworks import signatures

SAID = {key.partition("@")[0]: said for key, said in signatures.kept().items()}
ACTORS = [
    (framework, name, role)
    for framework, classes in signatures.ACTORS.items()
    for name, (_, role) in classes.items()
]


@pytest.mark.parametrize(("framework", "name", "role"), ACTORS)
def test_an_actor_of_a_framework_is_known_and_has_what_is_used(framework, name, role):
    """Its class tells its role; it has the engine, and the method that ends a step."""
    kind, said = kind_of(name, ""), SAID[framework][name]

    assert (kind.framework, kind.role) == (framework, role)
    if kind.ends_step:
        assert any(re.fullmatch(kind.ends_step, one) for one in said["methods"])
    way, _, method = kind.engine.partition(":")
    if way == "url":
        assert method in said["methods"]
    elif way:
        assert way in said["attributes"]


def test_a_part_of_a_step_does_not_end_it():
    """NeMo-RL trains micro-batches by calls of their own; the step ends with a later one."""
    kind = kind_of("DTensorPolicyWorkerV2", "")
    methods = SAID["NeMo-RL"]["DTensorPolicyWorkerV2"]["methods"]

    ends = {one for one in methods if re.fullmatch(kind.ends_step, one)}
    assert ends == {"train", "train_presharded", "finish_train_step_presharded"}
    assert "train_microbatch_presharded" in methods


def test_every_kind_was_read_in_a_framework():
    """A pattern that no class of its framework matches would never find anybody."""
    names = [name for _, name, _ in ACTORS]

    unread = {
        kind.pattern
        for kind in KINDS
        if kind.framework != "verl" and not any(kind.matches(name, "") for name in names)
    }
    assert unread == set()


def test_what_recipes_wrap_is_there():
    """A scope of AReaL takes its name first, and slime's loop is a function of its script."""
    scope = SAID["AReaL"]["areal/utils/perf_tracer.py"]["trace_scope"]

    assert scope[0] == "name"
    assert "args" in scope
    assert SAID["slime"]["train.py"]["train"] == ["args"]


# Engines behind actors are reached by the address that the actor tells


URL = "http://10.0.0.1:8000"


class Server:
    """Tells its address: slime's as text, SkyRL's as part of its answer."""

    def get_url(self):
        return URL

    def get_server_info(self):
        return SimpleNamespace(ip="10.0.0.1", port=8000, url=URL)


@pytest.fixture(name="member")
def _member(monkeypatch):
    """Return a function: a member of the class, with these plugins where it runs."""
    core = SimpleNamespace(
        current_actor_is_asyncio=lambda: True, current_actor_max_concurrency=lambda: 1
    )
    monkeypatch.setattr("ray._private.worker.global_worker.core_worker", core, raising=False)

    def member(name, *plugins):
        kind = kind_of(name, "")
        answer = question()(Server(), kind.engine, kind.version)
        look = Look(**{**answer, "plugins": plugins})
        return found._member(SimpleNamespace(), kind, SimpleNamespace(), look, "")

    return member


@pytest.mark.parametrize(
    ("name", "engine"), [("VLLMServerActor", "vllm"), ("SGLangEngine", "sglang")]
)
def test_a_server_is_recorded_at_its_address(member, name, engine):
    """With the plugin of its engine, also where the address is a part of the answer."""
    one = member(name, "vllm")

    assert (one.role, one.engine, one.problem) == ("rollout", engine, "")
    assert (one.replica.handle, one.replica.via) == (URL, "url")


def test_a_vllm_server_without_our_plugin_is_left_out(member):
    """Its workers cannot record; SGLang's own profiler needs no plugin there."""
    assert "rlprof-vllm" in member("VLLMServerActor").problem
    assert not member("SGLangEngine").problem
