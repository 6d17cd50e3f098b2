"""Windows of an engine like SGLang's: requests, answers, and the files that remain."""

import asyncio
import gzip
import json
from types import SimpleNamespace

import attrs
import pytest

from rlprof import CaptureError, Target, Window
from rlprof_engine.iterations import Iterations
from rlprof_engine.recording import IDLE
from rlprof_sglang import Sglang, SglangOptions, _guard, _native
from rlprof_sglang._facts import Facts, looked_inside, of_arguments, seen
from rlprof_sglang._native import FILES, Native
from rlprof_sglang._server import RefusedError, UnsaidError
from tests.cases import cases
from tests.engine_parts.lab import Driven
from tests.fakes.engines import kineto
from tests.fakes.sglang_engines import STOP, engine

pytestmark = pytest.mark.usefixtures("inside")
WINDOW = Window(7, 8, "rollout")


@pytest.fixture(name="driven")
def _driven(monkeypatch, tmp_path):
    """Return a function that makes a plugin with an engine, which it has as `.handle`."""

    def driven(handle=None, **options):
        driven.handle = handle or engine()
        return Driven(monkeypatch, tmp_path, Sglang, driven.handle, **options)

    return driven


def test_a_scheduler_records_the_steps_asked_for(driven):
    """A scheduler records exactly the steps asked for, and requests are exported with them."""
    one = driven(iterations=Iterations(count=2))

    found = one.record(lambda: driven.handle.generate("jest"))

    chosen = {"count": 2, "skip": 0}
    assert found.said.applied == {"way": "worker", "workers": [0], "iterations": chosen}
    assert set(found.said.unsupported) == {"requests: queued, prefill"}
    assert (found.ready.runs_on(), found.ready.loop()) == ("thread", None)
    ended = "iterations.count 2 was reached"
    steps = ["step[EXTEND bs=1 toks=4]", "pop", "step[DECODE bs=1]", "pop"]
    assert one.followers[0].seen == [*steps, ended]
    assert [(it["why"], it["iterations"]) for it in found.notes["answers"]["ended"]] == [(ended, 2)]
    facts = found.notes["facts"]
    assert (facts["workers"], facts["is_inside"], facts["lacks"]) == (1, True, [])
    assert (found.notes["way"], found.notes["lost"], found.notes["merged"]) == ("worker", "", False)
    told = {name: (it.status, it.note) for name, it in found.made.items()}
    assert told == {"_requests.trace.json.gz": ("whole", ""), "_sglang.json": ("whole", "")}


def test_misuse_and_unreachable_schedulers_are_reported(driven):
    """Hooks in the wrong order, and schedulers that cannot be reached, are errors."""
    one = driven()
    asked = driven.handle.tokenizer_manager

    one.assert_told("sglang", asked, "start_profile", "its schedulers cannot")


def test_sglangs_own_profiler_records_a_window(driven, tmp_path):
    """By SGLang's own profiler each scheduler leaves a trace, and the steps are counted."""
    one = driven(engine(tp=2), way="native", profiler_dir=str(tmp_path / "traces"))

    found = one.record(lambda: driven.handle.generate("jest"))

    assert (found.notes["ran"], found.notes["whys"], found.notes["lost"]) == ({"0": 4}, [], "")
    assert len(list((one.folder / FILES).iterdir())) == 2
    assert list((tmp_path / "traces").iterdir()) == []


# failures.md: sglang-refused
@cases(
    "hook, exc, why, later",
    ("start_profile", RuntimeError("already in progress"), "somebody else is profiling", ""),
    ("start_profile", RuntimeError("no disk"), "start_profile: no disk", ""),
    ("start_profile", TypeError("no such word"), "start_profile: no such word", ""),
    ("start_profile", RefusedError("no key"), "no key", ""),
    ("start_profile", UnsaidError("answered 500"), "answered 500", ""),
    ("stop_profile", KeyError("gone"), "stop_profile: KeyError", "is unknown"),
    ("stop_profile", RuntimeError("not in progress"), "", ""),
)
def test_an_error_of_the_engine_spoils_its_window(driven, tmp_path, *, hook, exc, why, later):
    """An error of a start spoils only its window; after a failed stop no further one opens."""
    one = driven(way="native", profiler_dir=str(tmp_path / "traces"))
    asked = driven.handle.tokenizer_manager
    one.call("configure")
    asked.raises[hook] = exc
    said = one.errors("start", "stop")
    asked.raises.clear()

    assert [why in one for one in said] == [True] * bool(why)
    stops = 0 if isinstance(exc, TypeError | RefusedError) or "already" in str(exc) else 1
    assert len(asked.called("stop_profile")) == stops
    asked.replica.ask(STOP)
    starts = len(asked.called("start_profile"))
    again = one.errors("start")
    assert [later in text for text in again] == [True] * bool(later)
    assert len(asked.called("start_profile")) == starts + (not later)


# failures.md: sglang-orphan
@pytest.mark.parametrize("is_overdue", [False, True])
def test_a_session_that_runs_there_is_left_unless_its_run_is_gone(driven, monkeypatch, is_overdue):
    """A session of another user blocks a window; an overdue one of rlprof does not."""
    one = driven(way="native", profiler_dir=str(_guard.tempfile.tempdir))
    one.call("configure")
    driven.handle.start_profile(output_dir="/tmp/theirs")
    monkeypatch.setattr(_guard, "until", 1.0 if is_overdue else 0.0)

    theirs = "sglang: somebody else is profiling this engine"
    assert one.errors("start") == [theirs] * (not is_overdue)


@pytest.fixture(name="exported")
def _exported(driven):
    """Return a function that exports a window with given notes and files, by their part."""
    one = driven(iterations=Iterations(count=5))
    (one.folder / FILES).mkdir()

    def exported(*names, way="native", ended=(), facts=None, **more):
        notes = {"way": way, "answers": {"ended": ended}, "facts": facts or {}, **more}
        (one.folder / "sglang.json").write_text(json.dumps(notes))
        for name in names:
            text = kineto([(1_700_000_000_000_000_000, "step[DECODE bs=1]")], 4000, 0)
            (one.folder / FILES / f"gs7{name}.trace.json").write_bytes(text)
        return {it.part or "summary": it for it in one.call("export")}

    exported.folder, exported.out = one.folder, one.out
    return exported


def layout(tp=1, pp=1, dp=1, **more):
    facts = Facts("Engine", tp=tp, pp=pp, dp=dp, has_layout=True, **more)
    return {**attrs.asdict(facts), "workers": facts.workers}


@cases(
    "name, facts, part, where",
    ("-TP-1-DP-1-PP-2-EP-3", layout(2, 3, 2), "worker 11", {"tp": 1, "dp": 1, "pp": 2}),
    ("-TP-1-DP-1-PP-2", layout(2, 3, 2, has_dp_attention=True), "worker 5",
     {"tp": 1, "dp": 1, "pp": 2}),
    ("-TP-1-DECODE", {}, "worker 1 decode", {"tp": 1}),
    ("", {}, "worker", {}),
)  # fmt: skip
def test_each_trace_is_of_its_scheduler(exported, name, facts, part, where):
    """A trace belongs to a scheduler by the ranks in its name and the engine's layout."""
    made = exported(name, facts=facts)[part]

    text = json.loads(gzip.decompress((exported.out / made.path).read_bytes()))
    assert text["rlprof"]["target"]["coordinates"] == where


# failures.md: sglang-traces
@cases(
    "names, more, note, status",
    (["-TP-0"], {"facts": layout(2)}, "1 of 2 schedulers left no trace in /f: its log",
     "partial"),
    (["-TP-0"], {"facts": layout(2), "lost": "no answer"}, "in /f: no answer", "partial"),
    (["-TP-0"], {"facts": layout(2), "by_stage": True}, "/f: a stage that never", "partial"),
    (["-TP-0"], {"facts": layout(2), "skips": True, "ran": {"0": 3}}, "iterations.skip had run",
     "partial"),
    (["-TP-0"], {"facts": layout(2), "skips": True, "ran": {}}, "/f: its log", "partial"),
    (["-TP-0"], {"facts": layout(2, nodes=3)}, "of this host; the other 2 have", "partial"),
    ([], {"facts": layout(2, 3), "ran": {"0": 0}}, f"worker 0: {IDLE}", "whole"),
    ([], {"facts": layout(2, has_dp_attention=True), "ran": {"0": 0}}, "1 of 2", "partial"),
    (["-TP-0-DP-1"], {"facts": layout(dp=2), "ran": {"0": 0, "1": 0}}, f"worker 0: {IDLE}",
     "whole"),
    (["-TP-0-DP-0"], {"facts": layout(dp=3), "ran": {"1": 0}}, "1 of 3 schedulers", "partial"),
    (["-TP-0-EXTEND"], {"by_stage": True}, "1 of 2 stages were recorded", "whole"),
    (["-TP-0-EXTEND", "-TP-0-DECODE"], {"facts": layout(), "by_stage": True, "ran": {"0": 0}}, "",
     "whole"),
    (["-TP-0"], {}, "worker 0: 1 of the 5 engine steps", "whole"),
    (["-TP-0-EXTEND"], {}, "worker 0, prefill: 1 of the 5", "whole"),
    ([], {"way": "worker", "ended": [{"state": "ended", "worker": 0, "iterations": 3}]},
     "worker 0: 3 of the 5 engine steps", "whole"),
    (["-TP-0"], {"merged": True}, "SGLang left no merged file", "partial"),
    (["-TP-0"], {"whys": ["worker 0: no disk"]}, "worker 0: no disk", "partial"),
)  # fmt: skip
def test_missing_traces_are_noted_with_the_reason(exported, names, more, note, status):
    """The summary notes missing traces and steps with the reason; an idle scheduler is no fault."""
    summary = exported(*names, **{"folder": "/f", **more})["summary"]

    assert note in summary.note
    assert summary.status == status
    assert ("stages were" in summary.note) is (more.get("by_stage", False) and len(names) == 1)
    assert note or IDLE not in summary.note


def test_facts_are_read_from_the_launch_arguments():
    """Facts come from the launch arguments; an invalid size counts as 1."""
    said = {"version": "0.5.23", "tp_size": 2, "pp_size": 0, "dp_size": "x", "attn_dp_size": 2,
            "nnodes": 3, "device": "cuda", "enable_metrics": True}  # fmt: skip

    assert of_arguments(said) == Facts(
        "http", "0.5.23", 2, nodes=3, has_dp_attention=True, has_layout=True, device="cuda",
        has_metrics=True,
    )  # fmt: skip
    assert of_arguments({"version": None, "device": None}) == Facts("http")
    assert of_arguments({"enable_dp_attention": True}).has_dp_attention
    assert Facts("x", tp=2, pp=3, dp=5).workers == 30
    assert Facts("x", tp=2, pp=3, dp=5, has_dp_attention=True).workers == 6
    assert seen(SimpleNamespace()) == Facts("SimpleNamespace", version="0.5.23")
    oldest, newer = (seen(engine(tp=2, is_resolved=one)) for one in (False, True))
    assert (oldest, newer.tp) == (newer, 2)


@pytest.mark.parametrize(
    ("states", "is_inside", "lacks"),
    [([{"rlprof": {"device": "npu"}}], True, ()), ([], False, ()),
     ([{"rlprof": {}}, {}], False, ()),
     ([{"rlprof": {"lacks": ["b", "a"]}}], False, ("a", "b")), (["odd"], False, ()),
     ([{"rlprof": {"error": "x"}}], False, ())],
)  # fmt: skip
def test_our_code_is_in_all_schedulers_or_in_none(states, is_inside, lacks):
    """Our code counts as inside only if the first scheduler of each replica reports it, whole."""
    found = looked_inside(Facts("x"), states)

    assert (found.is_inside, found.lacks) == (is_inside, lacks)
    assert found.device == ("npu" if is_inside else "")
    assert looked_inside(Facts("x", device="cpu"), states).device == "cpu"


def native(kind="Engine", *, is_local=True, version="", **facts):
    """Make an engine that has only facts, and counts its stops."""
    asked = SimpleNamespace(facts=Facts(kind, version=version, **facts), is_local=is_local, stops=0)

    async def stop():
        asked.stops += 1

    asked.stop = stop
    return asked


# failures.md: sglang-key
@pytest.mark.parametrize(
    ("kind", "is_local", "is_named", "mode"),
    [("Engine", True, False, 0), ("http", True, False, 0o777), ("http", False, True, 0o777),
     ("http", False, False, None)],
)  # fmt: skip
def test_a_folder_is_made_where_the_engine_can_write(tmp_path, kind, is_local, is_named, mode):
    """A server's folder is open to other users; on another host it has to be named."""
    options = SglangOptions(profiler_dir=str(tmp_path) if is_named else None)
    one = Native(native(kind, is_local=is_local), options, {})

    if mode is None:
        with pytest.raises(CaptureError, match="name a folder that both can see"):
            one._made(tmp_path, WINDOW, "run-1")
        return
    assert (one._made(tmp_path, WINDOW, "run-1").stat().st_mode & 0o777 == 0o777) is bool(mode)


# failures.md: sglang-harm
@cases("version, named", ("9.1", "SGLang 9.1 over"), ("", "unknown release"))
def test_a_request_that_would_end_the_schedulers_is_refused(monkeypatch, version, named):
    """Stages without rlprof's guard, and SGLang's second profiler, are refused."""
    options = SglangOptions(by_stage=True, iterations=Iterations(2))

    with pytest.raises(CaptureError, match=named):
        Native(native(version=version), options, {})._check()
    Native(native(is_inside=True), options, {})._check()
    monkeypatch.setenv("SGLANG_PROFILE_V2", "1")
    with pytest.raises(CaptureError, match="SGLANG_PROFILE_V2 is set; its profiler ends the"):
        Native(native(is_inside=True), SglangOptions(), {})._check()


@cases("pp, nodes, there, looks", (1, 1, 0, 0), (2, 2, 0, 0), (2, 1, 2, 0), (2, 1, 1, 2))
def test_later_stages_are_waited_for(tmp_path, monkeypatch, *, pp, nodes, there, looks):
    """A stop waits for late traces of pipeline stages, unless those are on another node."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(_native, "_LATE_S", 0.4)
    monkeypatch.setattr(_native.asyncio, "sleep", sleep)
    one = Native(native(pp=pp, nodes=nodes), SglangOptions(), {})
    asyncio.run(one._all_are_there())
    one.folder = tmp_path
    for name in ["x-TP-0", "x-TP-0-PP-1"][:there]:
        (tmp_path / f"{name}.trace.json.gz").touch()

    asyncio.run(one._all_are_there())

    assert len(slept) == looks


@cases("exc, stops", (None, 1), (RuntimeError("x"), 1), (RuntimeError("already in progress"), 0))
def test_a_start_that_is_answered_after_the_stop_is_undone(tmp_path, exc, stops):
    """A start that is answered after the stop is stopped, unless another user is profiling."""
    engine_ = native()
    one, answered = Native(engine_, SglangOptions(), {}), asyncio.Event()

    async def start(_):
        await answered.wait()
        if exc is not None:
            raise exc

    async def main():
        begun = asyncio.create_task(one.start(WINDOW, Target("rollout"), tmp_path, "run-1"))
        await asyncio.sleep(0)
        await one.stop(tmp_path / "raw")
        answered.set()
        await asyncio.gather(begun, return_exceptions=True)

    engine_.start = start
    asyncio.run(main())

    assert (engine_.stops, one.state) == (stops, "idle")


@pytest.mark.parametrize("asks", [False, True])
def test_a_server_passes_orders_on(monkeypatch, tmp_path, asks):
    """A server passes orders to its schedulers and, if asked, adds the requests of the window."""
    sent, state = [], {"device": "cpu", "number": 0}
    mine = {"state": "frontend", "unsupported": {}, "requests": '{"began": 1.0}\n'}

    async def ask(_, verb, path, body=None, missing=None):
        if path == "/server_info":
            own = {"rlprof_frontend": json.dumps(mine)} if sent else {}
            return {"tp_size": 1, "internal_states": [{"rlprof": state, **own}]}
        sent.append(json.loads(body["output_dir"].removeprefix("rlprof:")))
        verb = json.loads(sent[-1]["order"])["verb"]
        words = {"prepare": "ready", "begin": "recording", "end": "ended"}
        state["answer"] = json.dumps({"state": words[verb], "worker": 0, "why": ""})
        return None

    monkeypatch.setattr("rlprof_engine.http.Http.ask", ask)
    one = Driven(monkeypatch, tmp_path, Sglang, "http://127.0.0.1:1", requests=asks)

    found = one.record(lambda: None)

    assert [it["requests"] for it in sent] == [asks] * 3
    assert found.said.applied == {"way": "worker", "workers": [0]}
    assert found.said.unsupported == {}
    assert (found.ready.runs_on(), found.ready.loop()) == ("process", None)
    assert (one.folder / "requests.jsonl").exists() is asks
    assert found.made["_sglang.json"].status == "whole"
