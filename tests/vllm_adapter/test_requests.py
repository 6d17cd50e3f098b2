"""Lives of requests in a frontend like vLLM's, in this process or in a server."""

import asyncio
import json
import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from rlprof_engine.requests import FILE, trace_events
from rlprof_vllm import inside
from rlprof_vllm._requests import Requests
from tests.fakes.vllm_engines import state


@pytest.fixture(name="frontend")
def _frontend():
    return SimpleNamespace(output_processor=SimpleNamespace(request_states={}))


def test_each_request_says_how_it_ended(frontend, tmp_path):
    """Each request says how it ended: by length, stop or abort, or that it is unfinished."""
    states = frontend.output_processor.request_states
    for name, tokens in (("full", 4), ("ended", 3), ("aborted", 3), ("going on", 1)):
        states[name] = state(name, 2, 4, tokens)
    requests = Requests(frontend)

    requests.start()
    states = frontend.output_processor.request_states
    states.pop("full")
    states.pop("ended")
    time.sleep(0.001)
    states.pop("aborted", None)
    assert states.pop("nobody", None) is None
    requests.stop(tmp_path)

    events = [one for one in trace_events(tmp_path / FILE, 1) if one.get("cat") == "request"]
    whole = {one["args"]["id"]: one for one in events if "id" in one["args"]}
    assert {name: one["args"].get("finish") for name, one in whole.items()} == {
        "full": "length", "ended": "stop", "aborted": "abort", "going on": None,
    }  # fmt: skip
    assert [one["args"]["tokens"] for one in whole.values()] == [4, 3, 3, 1]
    assert whole["ended"]["dur"] < whole["aborted"]["dur"]
    assert [name for name, one in whole.items() if "unfinished" in one["args"]] == ["going on"]


def test_without_statistics_an_abort_is_still_noted(frontend, tmp_path):
    """Without statistics only an aborted request says how it ended."""
    states = frontend.output_processor.request_states
    for name in ("ended", "aborted", "going on"):
        states[name] = SimpleNamespace(request_id=name, prompt_len=2, stats=None)
    requests = Requests(frontend)

    requests.start()
    frontend.output_processor.request_states.pop("ended")
    frontend.output_processor.request_states.pop("aborted", None)
    requests.stop(tmp_path)

    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()[1:]]
    told = [(line["id"], line.get("finish")) for line in lines]
    assert told == [("ended", None), ("aborted", "abort"), ("going on", None)]


class Frontend:
    """The parts of an AsyncLLM in use: its requests, and the way to its workers."""

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


@pytest.fixture(name="server")
def _server():
    """Return a class of frontends that the plugin may change."""
    return type("AsyncLLM", (Frontend,), {"collective_rpc": Frontend.collective_rpc})


def told(frontend, verb, *, method=inside.METHOD):
    order = json.dumps({"verb": verb, "run": "r1", "window": "2/rollout"})
    said = json.dumps({"order": order, "requests": True})
    return asyncio.run(frontend.collective_rpc(method=method, args=(said,)))


def test_the_frontend_answers_an_order_after_the_workers(serve, server):
    """The frontend watches requests during a window and answers last; other calls are unchanged."""
    serve(server)
    engine = server()

    _, begun = told(engine, "begin")
    watched = type(engine.output_processor.request_states)
    _, ended = told(engine, "end")

    assert json.loads(begun)["state"] == "frontend"
    assert "requests" in json.loads(ended)
    assert watched is not dict
    assert type(engine.output_processor.request_states) is dict
    assert told(engine, "begin", method="sleep") == ["sleep of a worker"]


def test_no_frontend_is_changed_outside_development_mode_or_if_it_is_unknown(serve, server):
    """A frontend outside development mode, or an unknown one, is unchanged; its workers are not."""
    before = server.collective_rpc

    serve(server, is_dev=False)
    worker = serve(object)

    assert server.collective_rpc is before
    assert hasattr(worker, inside.METHOD)
