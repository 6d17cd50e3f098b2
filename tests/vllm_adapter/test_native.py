"""Windows of vLLM's own profiler: their files, and the facts read from an engine before."""

import asyncio
import gzip
import json
from types import SimpleNamespace

import pytest

from rlprof import CaptureError, Window
from rlprof_vllm import Vllm
from rlprof_vllm._engine import reach
from rlprof_vllm._facts import Facts, looked_inside, seen
from rlprof_vllm._native import Native
from rlprof_vllm._options import Iterations, VllmOptions
from rlprof_vllm._server import RefusedError, Server
from rlprof_vllm.inside import METHOD
from tests.cases import cases
from tests.engine_parts.lab import Driven
from tests.fakes.engines import kineto
from tests.fakes.vllm_engines import EngineDeadError
from tests.vllm_adapter.generations import engine

WINDOW = Window(7, 8, "rollout")
QUIET = {"ignore_frontend": True}
STEP = (1_700_000_000_000_000_000, "execute_context_1(2)_generation_0(0)")


@pytest.fixture(name="exported")
def _exported(monkeypatch, tmp_path):
    """Return a function that exports a window with given notes and files, by their part."""
    driven = Driven(monkeypatch, tmp_path, Vllm, None)
    (driven.folder / "native").mkdir()

    def exported(files=(), *, way="native", ended=(), **facts):
        notes = {"way": way, "facts": facts, "answers": {"ended": ended}}
        (driven.folder / "vllm.json").write_text(json.dumps(notes))
        for name, steps, rank in files:
            (driven.folder / "native" / name).write_bytes(kineto(steps, 4000, rank))
        of = {"json": "summary", "chrome-trace": "cut"}
        return {one.part or of[one.format]: one for one in driven.call("export")}

    exported.driven = driven
    return exported


def where(exported, artifact):
    text = gzip.decompress((exported.driven.out / artifact.path).read_bytes())
    return json.loads(text)["rlprof"]["target"]["coordinates"]


# failures.md: vllm-traces
def test_each_trace_is_of_its_worker(exported):
    """A trace belongs to a worker by its name or its content; the frontend's is never idle."""
    names = ["a_rank0.1.pt.trace.json", "b_rank-5.1.pt.trace.json", "c.2.pt.trace.json"]
    files = [(names[0], [STEP], 0), (names[1], [], 0), (names[2], [STEP], 2),
             ("host_async_llm.3.pt.trace.json", [], 0)]  # fmt: skip

    made = exported(files, tp=2, pp=3, dp=2, has_layout=True, directory="/traces")

    assert {part: where(exported, one) for part, one in made.items() if part != "summary"} == {
        "worker 0": {"tp": 0, "pp": 0}, "worker 5": {"tp": 1, "pp": 2},
        "worker 2": {"tp": 0, "pp": 1}, "frontend": {},
    }  # fmt: skip
    assert [part for part, one in made.items() if "idle" in one.note] == ["worker 5"]
    summary = made["summary"]
    assert summary.status == "partial"
    assert summary.note.startswith("9 of 12 workers left no trace in /traces; only")
    unknown = exported()
    found = (where(exported, unknown["worker 5"]), unknown["summary"].status)
    assert found == ({"worker": 5}, "whole")


# failures.md: vllm-traces
def test_a_cut_trace_spoils_no_other(exported):
    """A cut trace is kept as a partial file, and the trace of the other worker is whole."""
    file = exported.driven.folder / "native" / "b_rank1.1.pt.trace.json"
    file.write_bytes(kineto([STEP], 4000, 1)[:20])

    made = exported([("a_rank0.1.pt.trace.json", [STEP], 0)], tp=2, pp=1, dp=1, has_layout=True)

    assert {part: (one.kind, one.status) for part, one in made.items()} == {
        "worker 0": ("trace", "whole"), "cut": ("files", "partial"),
        "summary": ("files", "partial"),
    }  # fmt: skip
    assert "cannot be read" in made["cut"].note
    assert "1 of 2 workers left no trace" in made["summary"].note


def test_the_facts_of_an_engine_are_read_without_a_call(tmp_path):
    """Layout, profiler and methods are read from attributes; an unknown handle has fewer facts."""
    launched = {"torch_profiler_with_stack": True, "ignore_frontend": True, "max_iterations": 4}
    handle = engine("vllm==0.33.0", "LLM", directory=tmp_path, tp=2, launched=launched)
    sizes = handle.llm_engine.vllm_config.parallel_config
    sizes.pipeline_parallel_size, sizes.data_parallel_size = 3, 5
    bare, off = SimpleNamespace(start_profile=lambda: 1), engine("vllm==0.33.0")
    proxy = SimpleNamespace(vllm_config=SimpleNamespace(parallel_config=print))

    known, quiet = seen(handle), seen(off)

    assert (known.kind, known.workers, known.has_layout, known.is_here) == ("LLM", 30, True, False)
    assert {"is_sleeping", "start_profile"} <= set(known.methods)
    assert (known.profiler, known.directory, known.contents) == ("torch", str(tmp_path), ("stack",))
    assert known.at_launch == {"delay_iterations": 0, "max_iterations": 4}
    assert (known.records_frontend, quiet.records_frontend) == (False, True)
    off.vllm_config.profiler_config = None
    assert (quiet.profiler, seen(off).records_frontend) == ("", False)
    assert [seen(one).has_layout for one in (bare, proxy)] == [False, False]
    assert seen(bare).methods == ("start_profile",)
    assert not known.can_tell_workers


# failures.md: vllm-native
def test_an_opaque_engine_gets_no_arguments(tmp_path):
    """An opaque handle gets no arguments; a folder other than the launch's is unsupported."""
    handle = engine("vllm==0.33.0", directory=tmp_path)
    start = lambda **given: handle.start_profile(**given)  # noqa: E731, PLW0108 -- of any names
    opaque = SimpleNamespace(start_profile=start)
    told = []
    for one, wanted in ((handle, tmp_path), (handle, "/x"), (handle, None), (opaque, "/x")):
        options = VllmOptions(profiler_dir=wanted and str(wanted), iterations=Iterations(2))
        native = Native(reach(one, ""), options, ())
        asyncio.run(native.start(WINDOW, "run-1"))
        handle.profiler.stop()
        told.append("profiler_dir" in native.unsupported)

    assert told == [False, True, False, False]
    assert "does not say what it was launched with" in native.unsupported["iterations"]
    assert set(handle.called("start_profile")[-1].values()) == {None}


@pytest.fixture(name="driven")
def _driven(monkeypatch, tmp_path):
    """Return a plugin for vLLM's own profiler, whose folder cannot be made, with its `.handle`."""
    (tmp_path / "file").touch()
    handle = engine("vllm==0.33.0", directory=tmp_path / "file" / "traces", launched=QUIET)
    driven = Driven(monkeypatch, tmp_path, Vllm, handle, way="native")
    driven.handle = handle
    driven.call("configure")
    return driven


# failures.md: vllm-refused, vllm-profiled
@cases(
    "hook, exc, why, stops",
    ("start_profile", TypeError("no such word"), "start_profile: TypeError: no such word", 0),
    ("start_profile", ValueError("no such word"), "start_profile: ValueError: no such word", 0),
    ("start_profile", RuntimeError("Profiling is not enabled"), "Profiling is not enabled", 0),
    ("start_profile", RefusedError("answered 409"), "answered 409", 0),
    ("start_profile", RuntimeError("no answer"), "start_profile: RuntimeError: no answer", 1),
    ("stop_profile", RuntimeError("no answer"), "stop_profile: RuntimeError: no answer", 1),
)
def test_an_error_of_the_engine_spoils_its_window(driven, hook, exc, why, stops):
    """A start that may have begun is stopped; after a failed stop the next window is refused."""
    driven.handle.raises[hook] = exc
    said = driven.errors("start", "stop")
    driven.handle.raises.clear()

    again = driven.errors("start", "stop")

    assert len(said) == 1
    assert why in said[0]
    assert len(driven.handle.called("stop_profile")) == stops + (hook == "start_profile")
    theirs = "vllm: somebody else is profiling this engine"
    assert again == [theirs] * (hook == "stop_profile")


# failures.md: vllm-asleep
@cases("word", "asleep", "paused")
def test_a_window_on_a_sleeping_engine_is_refused(driven, word):
    """A window on a sleeping or paused engine is refused; once awake, the engine is recorded."""
    method = {"asleep": "_is_sleeping", "paused": "_is_paused"}[word]
    setattr(driven.handle, method, lambda: True)
    (said,) = driven.errors("start")
    delattr(driven.handle, method)

    assert said.startswith(f"vllm: the engine is {word};")
    assert driven.handle.called("start_profile") == []
    assert driven.errors("start") == []


# failures.md: engine-gone
def test_an_engine_that_dies_while_it_is_asked_is_called_dead(driven):
    """If the engine dies during a call, the error says that the engine is dead."""

    def asked():
        driven.handle.die()
        raise EngineDeadError("EngineCore encountered an issue")

    driven.handle._is_sleeping = asked

    assert driven.errors("start") == ["vllm: the engine is dead"]


# failures.md: vllm-profiled
def test_files_of_another_session_stay_where_they_are():
    """Without a prefix new traces and all tables are ours; with one, only files that begin so."""
    native = Native(reach(engine("vllm==0.13.0"), ""), VllmOptions(), ())
    native._before = frozenset(["old.json", "old.txt"])

    names = ["old.json", "new.json", "old.txt"]
    assert [name for name in names if native._is_ours(name)] == ["new.json", "old.txt"]
    native._prefix = "new"
    assert [name for name in names if native._is_ours(name)] == ["new.json"]


@pytest.mark.parametrize(
    ("code", "error", "why"),
    [(404, RefusedError, "it was launched without a profiler"),
     (409, RefusedError, "somebody else"),
     (422, RefusedError, "answered 422: no"), (500, CaptureError, "answered 500: no")],
)  # fmt: skip
def test_a_refusal_says_whether_the_session_may_have_begun(code, error, why):
    """After a 500 the session may have begun; after any other refusal it has not."""
    refusal = Server("http://a:1", "")._refusal("/start_profile", code, "no")

    assert type(refusal) is error
    assert why in str(refusal)


# failures.md: vllm-native
@cases("found, has_it", ([[METHOD], [METHOD]], True), ([[METHOD], ["x"]], False), ([], False))
def test_our_code_is_in_all_workers_or_in_none(found, has_it):
    """Workers count as having rlprof only if all of them list its method."""

    async def call(*_):
        return found

    facts = asyncio.run(looked_inside(Facts("AsyncLLM", can_tell_workers=True), call))

    assert facts.can_tell_workers is has_it


def test_nothing_is_asked_of_workers_by_the_native_way_or_too_early(monkeypatch, tmp_path):
    """`way: native`, and an engine that has no loop yet, cause no call to the workers."""
    monkeypatch.setattr("rlprof_vllm.inside.installed", True)
    handle, early = (engine("vllm==0.33.0", directory=tmp_path) for _ in range(2))
    early.output_handler = None
    Driven(monkeypatch, tmp_path / "a", Vllm, handle, way="native").call("configure")
    driven = Driven(monkeypatch, tmp_path / "b", Vllm, early)

    driven.call("configure")

    assert handle.calls == early.calls == []
    (said,) = driven.errors("start")
    assert said.startswith("vllm: the engine has no event loop yet")
    assert not reach(engine("vllm==0.33.0", "LLM"), "").is_unborn

    async def with_a_task():
        early.output_handler = asyncio.current_task()
        return reach(early, "").loop is asyncio.get_running_loop()

    assert asyncio.run(with_a_task())
