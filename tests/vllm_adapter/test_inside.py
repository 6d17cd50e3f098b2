"""Windows that vLLM's workers record: orders, answers, and the files that remain."""

import json
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from rlprof import CaptureError
from rlprof_engine.iterations import Iterations
from rlprof_vllm import Vllm, _vllm, inside
from rlprof_vllm._facts import Facts
from rlprof_vllm._options import VllmOptions
from tests.cases import cases
from tests.engine_parts.lab import Driven, orders
from tests.vllm_adapter.generations import Worker, engine

STEP = "execute_context_?(?)_generation_?(?)"
NEW = "vllm==0.33.0"


@pytest.fixture(name="driven")
def _driven(monkeypatch, tmp_path):
    """Return a function that makes a plugin with an engine of two workers, or another handle."""
    monkeypatch.setattr(inside, "installed", True)

    def driven(handle=None, workers=None, **options):
        return Driven(monkeypatch, tmp_path, Vllm, handle or handles[0], workers, **options)

    handles = [engine(NEW, tp=2, workers=[Worker(0, 2), Worker(1, 2)])]
    driven.handle = handles[0]
    return driven


def test_each_worker_records_the_steps_asked_for(driven):
    """Each worker records exactly the steps asked for, and requests are exported with them."""
    one = driven(iterations=Iterations(count=3))

    found = one.record(lambda: driven.handle.generate("jest"))

    chosen = {"count": 3, "skip": 0}
    assert found.said.applied == {"way": "worker", "workers": [0, 1], "iterations": chosen}
    assert found.said.unsupported == {}
    assert (found.ready.runs_on(), found.ready.loop()) == ("process", None)
    ended, per_step = "iterations.count 3 was reached", [STEP, "pop"]
    assert [one.followers[n].seen for n in (0, 1)] == [[*per_step * 3, ended]] * 2
    answers = [(it["why"], it["iterations"]) for it in found.notes["answers"]["ended"]]
    assert answers == [(ended, 3)] * 2
    assert (found.notes["way"], found.notes["facts"]["tp"]) == ("worker", 2)
    told = {name: (it.status, it.note) for name, it in found.made.items()}
    assert told == {"_requests.trace.json.gz": ("whole", ""), "_vllm.json": ("whole", "")}


def test_only_chosen_ranks_record(driven):
    """Of two workers only the chosen rank records, and the summary is whole."""
    one = driven(workers=orders(ranks=(4, 5), chosen=(5,)))

    found = one.record(lambda: driven.handle.generate("jest"))

    assert found.said.applied == {"way": "worker", "workers": [1]}
    assert (list(one.followers), found.made["_vllm.json"].status) == ([1], "whole")


def test_misuse_and_unreachable_workers_are_reported(driven):
    """Hooks in the wrong order, workers that cannot be reached and a dead engine are errors."""
    one = driven()

    one.assert_told("vllm", driven.handle, "collective_rpc", "its workers cannot")
    driven.handle.raises.clear()
    driven.handle.die()
    assert one.errors("start") == ["vllm: the engine is dead"]


def test_a_window_whose_begin_fails_is_ended_in_the_workers(driven):
    """If the answers to a begin are lost, the stop ends the window in the workers all the same."""
    one, carry = driven(), driven.handle._collective_rpc
    one.call("configure")
    driven.handle._collective_rpc = lambda **given: carry(**given) and {}["no answer"]
    assert len(one.errors("start")) == 1
    driven.handle._collective_rpc = carry

    assert one.errors("stop", "start") == []
    assert [one.followers[n].seen for n in (0, 1)] == [["end"]] * 2


def test_a_worker_that_cannot_record_refuses_at_once(driven, monkeypatch):
    """If workers lack the method that runs steps, `configure` fails and names it."""
    monkeypatch.delattr(Worker, "execute_model")

    with pytest.raises(CaptureError, match=r"no worker records: .* no Worker.execute_model"):
        driven().call("configure")


def test_an_engine_in_this_process_records_on_its_thread(driven):
    """An engine in this process is ready to record on the thread that calls it."""
    driven.handle.engine_core = type("InprocClient", (), {})()

    assert driven().call("configure").runs_on() == "thread"


@pytest.mark.parametrize(("asks", "answers"), [(True, True), (True, False), (False, True)])
def test_a_server_in_development_mode_passes_orders_on(driven, monkeypatch, asks, answers):
    """A server in development mode passes orders on; its frontend adds requests if it can."""
    worker, orders_ = Worker(0), []
    routes = ("collective_rpc", "start_profile", "is_sleeping")
    got = {"/version": {"version": "0.33.0"}, "/is_sleeping": {"is_sleeping": False},
           "/openapi.json": {"paths": {f"/{name}": {} for name in routes}}}  # fmt: skip
    if asks:
        got["/openapi.json"]["paths"]["/start_profile"] = {"post": {"requestBody": {}}}

    async def ask(_, verb, path, body=None, missing=None):
        if path in got:
            return got[path]
        assert (verb, path, missing) == ("POST", "/collective_rpc", None)
        if body["method"] == "__dir__":
            return {"results": [[inside.METHOD]]}
        orders_.append(json.loads(body["args"][0]))
        mine = {"state": "frontend", "unsupported": {}, "requests": '{"began": 1.0}\n'}
        own = [json.dumps(mine)] * (answers and orders_[-1]["requests"])
        return {"results": [inside.obey(SimpleNamespace(worker=worker), *body["args"]), *own]}

    monkeypatch.setattr("rlprof_engine.http.Http.ask", ask)
    one = driven("http://a:1", requests=asks)

    found = one.record(lambda: worker.execute_model(1))

    assert [it["requests"] for it in orders_] == [asks] * 3
    facts = found.notes["facts"]
    assert (found.notes["way"], facts["version"], facts["profiler"]) == ("worker", "0.33.0", None)
    assert ("max_iterations" in facts["parameters"]) is asks
    assert [it["state"] for it in found.notes["answers"]["ended"]] == ["ended"]
    assert ("requests" in found.said.unsupported) is (asks and not answers)
    assert (one.folder / "requests.jsonl").exists() is (asks and answers)


@pytest.mark.parametrize(
    ("worker", "number", "where"),
    [(Worker(1, 2), 1, {"tp": 1, "pp": 0, "dp": 0}),
     (Worker(5, 2, 3), 5, {"tp": 1, "pp": 2, "dp": 0}),
     (Worker(3, 2, 2, 2), 11, {"tp": 1, "pp": 1, "dp": 2}),
     (Worker(7, 2, 3, 1), 7, {"tp": 1, "pp": 0, "dp": 1})],
)  # fmt: skip
def test_a_worker_knows_its_place(worker, number, where):
    """The number and the coordinates of a worker follow from its rank, layout and replica."""
    found = inside.place_of(worker)

    assert (found.number, found.coordinates) == (number, where)
    assert (found.owner, found.instead) == (worker, {})


def test_a_workers_weights_and_profiler_are_wrapped():
    """The model's `load_weights` and a profiler that names steps are wrapped where they exist."""
    worker, model, steps = Worker(0), object(), []
    plain = [cut.method for cut in inside.place_of(worker).cuts]
    worker.vllm_config.parallel_config.data_parallel_rank = 3
    worker.vllm_config.parallel_config.data_parallel_index = None
    worker.model_runner = SimpleNamespace(model=model)
    worker.profiler = SimpleNamespace(step=lambda: steps.append(1))

    old = inside.place_of(worker)
    worker.profiler.is_running = False

    assert [(cut.owner, cut.method) for cut in old.cuts[len(plain) :]] == [(model, "load_weights")]
    assert {"sleep", "wake_up", "load_model"} <= set(plain)
    assert old.number == 3
    with old.instead["annotate_profile"](None):
        assert steps == [1]
    assert inside.place_of(worker).instead == {}


HAS_IT = {"methods": ("start_profile",)}


# failures.md: vllm-launch
@cases(
    "facts, tools, found",
    ({"can_tell_workers": True}, ["torch"], "worker"),
    ({"can_tell_workers": True, **HAS_IT}, [], "native"),
    (HAS_IT, ["torch"], "native"),
    ({"kind": "http"}, ["torch"], "cannot be reached: start it with VLLM_SERVER_DEV_MODE=1"),
    ({"kind": "http", "methods": ("collective_rpc",)}, ["torch"], "rlprof-vllm is not in them"),
    ({}, ["torch"], "rlprof-vllm is not in them: install it there.*LLM has no start_profile"),
    ({}, [], "the config names no tool for them"),
    (HAS_IT, ["nsys"], "it records torch only, and cannot replace nsys"),
    (HAS_IT | {"profiler": ""}, ["torch"], "it is off; launch the engine"),
    (HAS_IT | {"profiler": "", "version": "9"}, ["torch"], "vLLM 9 has it in a place unknown"),
)
def test_the_way_follows_from_the_facts(monkeypatch, facts, tools, found):
    """The workers record if they have rlprof, else vLLM's profiler; else the error says why."""
    sources = None if "version" not in facts else "its sources"
    monkeypatch.setattr(_vllm, "sources_here", lambda: sources)
    monkeypatch.setattr(_vllm, "has_known_profiler", lambda there: there is None)
    monkeypatch.setattr(_vllm, "version", lambda _: "9")
    engine_ = SimpleNamespace(facts=Facts(**{"kind": "LLM", **facts}))

    if " " not in found:
        assert _vllm._way(VllmOptions(), engine_, dict.fromkeys(tools)) == found
        return
    with pytest.raises(CaptureError, match=found):
        _vllm._way(VllmOptions(), engine_, dict.fromkeys(tools))


@pytest.mark.parametrize(
    ("is_on", "facts", "is_refused"),
    [(None, {"is_here": True}, False), (False, {"is_here": True}, False), (True, {}, False),
     (True, {"is_here": True}, True), (True, {"records_frontend": True}, True)],
)  # fmt: skip
def test_two_profilers_never_run_in_one_process(monkeypatch, is_on, facts, is_refused):
    """A window of vLLM's profiler is refused where another torch profiler runs."""
    profiler = SimpleNamespace(_is_profiler_enabled=is_on)
    torch = SimpleNamespace(autograd=SimpleNamespace(profiler=profiler))
    monkeypatch.setitem(sys.modules, "torch", None if is_on is None else torch)

    with pytest.raises(CaptureError, match="both would crash") if is_refused else nullcontext():
        _vllm._check_hosting(SimpleNamespace(facts=Facts("LLM", **facts)))
