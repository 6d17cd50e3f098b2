"""A vLLM server, whose own process watches requests as the orders of a window pass through it."""

from __future__ import annotations

import asyncio
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from rlprof_vllm import inside


class Frontend:
    """What an AsyncLLM has of interest: its requests, and the way to its workers."""

    def __init__(self):
        self.output_processor = SimpleNamespace(request_states={})

    async def collective_rpc(self, method, timeout=None, args=(), kwargs=None):
        return [f"{method} of a worker"]


@pytest.fixture(name="serve")
def _serve(monkeypatch):
    """Return a function that loads rlprof's plugin in a process with those settings of vLLM."""
    worker = type("WorkerWrapperBase", (), {})

    def serve(frontend, *, is_dev=True):
        given = {
            "vllm": {"envs": SimpleNamespace(VLLM_SERVER_DEV_MODE=is_dev)},
            "vllm.v1.worker.worker_base": {"WorkerWrapperBase": worker},
            "vllm.v1.engine.async_llm": {"AsyncLLM": frontend},
        }
        for name, members in given.items():
            module = ModuleType(name)
            vars(module).update(members)
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(inside, "installed", False)
        inside.install()
        return worker

    return serve


@pytest.fixture(name="frontend")
def _frontend():
    """Return a class of frontends that the plugin may change."""
    return type("AsyncLLM", (Frontend,), {"collective_rpc": Frontend.collective_rpc})


def told(frontend, verb, *, method=inside.METHOD):
    order = json.dumps({"verb": verb, "run": "r1", "window": "2/rollout"})
    said = json.dumps({"order": order, "requests": True})
    return asyncio.run(frontend.collective_rpc(method=method, args=(said,)))


def test_the_frontend_answers_an_order_after_the_workers(serve, frontend):
    """It watches from the begin of a window to its end; calls of others pass as they are."""
    serve(frontend)
    engine = frontend()

    _, begun = told(engine, "begin")
    watched = type(engine.output_processor.request_states)
    _, ended = told(engine, "end")

    assert json.loads(begun)["state"] == "frontend"
    assert "requests" in json.loads(ended)
    assert watched is not dict
    assert type(engine.output_processor.request_states) is dict
    assert told(engine, "begin", method="sleep") == ["sleep of a worker"]


def test_no_frontend_is_changed_outside_development_mode(serve, frontend):
    """Such a server passes no order on."""
    before = frontend.collective_rpc

    serve(frontend, is_dev=False)

    assert frontend.collective_rpc is before


def test_an_unknown_frontend_keeps_no_server_from_starting(serve):
    """The workers can still be told."""
    worker = serve(object)

    assert hasattr(worker, inside.METHOD)
