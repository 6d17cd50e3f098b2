"""`rlprof attach` reaches engines behind actors by the address that the actor tells."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rlprof_ray.attaching import found
from rlprof_ray.attaching.frameworks import kind_of
from rlprof_ray.attaching.look import Look, question

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
