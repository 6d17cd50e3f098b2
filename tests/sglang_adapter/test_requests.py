"""Lives of requests, read from a frontend that keeps and drops them as SGLang's does."""

import asyncio
import json
import time
from types import SimpleNamespace

import pytest

from rlprof_engine.requests import FILE, trace_events
from rlprof_sglang import _frontend as serving
from rlprof_sglang._requests import Requests


@pytest.fixture(name="frontend")
def _frontend():
    return SimpleNamespace(rid_to_state={})


def begin(frontend, name):
    """Have *frontend* take a request; its times are kept in its state."""
    now = time.monotonic()
    state = SimpleNamespace(out_list=[], created_time=time.time())
    times = {"created_time": now, "first_token_time": now, "last_time": now}
    state.time_stats = SimpleNamespace(**times)
    frontend.rid_to_state[name] = state
    return state


def end(frontend, name, *, reason="stop", early=False, **meta):
    """End a request on a loop: SGLang drops its state and then, or *early*, answers it."""
    state = frontend.rid_to_state[name]
    said = {"id": name, "finish_reason": {"type": reason}, **meta}
    answer = {"text": "secret", "output_ids": [1], "meta_info": said}
    answered = asyncio.Event()

    async def waits():
        await answered.wait()
        state.out_list = []

    async def ends():
        waiting = asyncio.create_task(waits())
        await asyncio.sleep(0)
        state.out_list += [answer] if early else []
        del frontend.rid_to_state[name]
        state.out_list += [] if early else [answer]
        answered.set()
        await waiting

    asyncio.run(ends())


def slices_of(folder):
    return [one for one in trace_events(folder / FILE, 1) if one.get("cat") == "request"]


@pytest.mark.parametrize("early", [False, True])
def test_each_request_says_how_it_ended(frontend, tmp_path, early):
    """Each request says how it ended: by stop, length or abort, or that it is unfinished."""
    for name in ("ended", "full", "aborted", "going on"):
        begin(frontend, name)
    frontend.rid_to_state["going on"].time_stats.first_token_time = 0.0  # none yet
    requests = Requests(frontend, has_metrics=True)

    requests.start()
    end(frontend, "ended", early=early, completion_tokens=3, prompt_tokens=7, cached_tokens=5)
    end(frontend, "full", reason="length", early=early, num_retractions=2, dp_rank=1)
    end(frontend, "aborted", reason="abort", early=early)
    requests.stop(tmp_path)

    told = map(json.loads, (tmp_path / FILE).read_text().splitlines()[1:])
    lines = {line["id"]: line for line in told}
    assert type(frontend.rid_to_state) is dict
    assert {name: line.get("finish") for name, line in lines.items()} == {
        "ended": "stop", "full": "length", "aborted": "abort", "going on": None,
    }  # fmt: skip
    counts = {name: lines["ended"][name] for name in ("tokens", "prompt_tokens", "cached_tokens")}
    assert counts == {"tokens": 3, "prompt_tokens": 7, "cached_tokens": 5}
    assert (lines["full"]["retractions"], lines["full"]["dp"]) == (2, 1)
    whole = {one["args"]["id"]: one["args"] for one in slices_of(tmp_path) if "id" in one["args"]}
    assert [name for name, args in whole.items() if "unfinished" in args] == ["going on"]
    assert {"queued_ts", "first_token_ts"} <= set(lines["ended"])
    assert "first_token_ts" not in lines["going on"]
    assert "secret" not in (tmp_path / FILE).read_text()


def test_with_metrics_a_request_shows_when_it_waited(frontend, tmp_path):
    """With metrics a request has queued, prefill and decode slices of the right lengths."""
    requests = Requests(frontend, has_metrics=True)
    requests.start()
    begin(frontend, "one")
    now = time.time()
    end(frontend, "one", queue_time=0.25, forward_entry_time=now - 0.5,
        prefill_finished_time=now - 0.125)  # fmt: skip
    requests.stop(tmp_path)

    parts = {one["name"]: one for one in slices_of(tmp_path)}

    assert [*parts] == ["request one", "queued", "prefill", "decode"]
    assert parts["queued"]["dur"] == pytest.approx(250_000, abs=2000)
    assert parts["prefill"]["dur"] == pytest.approx(375_000, abs=2000)
    assert parts["queued"]["ts"] == parts["request one"]["ts"]


def test_a_servers_own_process_watches_requests(monkeypatch):
    """A server's process watches requests during an order, and its answer expires."""
    manager, asked = SimpleNamespace(rid_to_state={"a": SimpleNamespace()}), []

    async def original(*given):
        asked.append(given)
        return [{}, {}]

    def order(verb):
        order = json.dumps({"verb": verb, "run": "r", "window": "w"})
        said = json.dumps({"order": order, "requests": True})
        request = SimpleNamespace(output_dir=f"rlprof:{said}" if verb else None)
        first = asyncio.run(serving.start_profile(original, manager, request))
        assert first == [{}, {}]
        states = asyncio.run(serving.get_internal_state(original, manager))
        assert states[1] == {}
        return json.loads(states[0].get("rlprof_frontend", "null"))

    monkeypatch.setattr(serving, "_answer", (0.0, ""))
    assert order("") is None
    assert order("begin")["unsupported"].keys() == {"requests: queued, prefill"}
    assert '"id": "a"' in order("end")["requests"]
    monkeypatch.setattr(serving, "_answer", (1.0, "late"))
    assert order("") is None
    asyncio.run(serving.start_profile(original, manager))
    assert asked[-1] == (manager,)
