"""What vLLM's own profiler leaves of a window, and what is read from an engine before it starts."""

import asyncio
import gzip
import json
from types import SimpleNamespace

import pytest

from rlprof_engine import requests
from rlprof_vllm import Vllm
from rlprof_vllm._engine import reach
from rlprof_vllm._facts import seen
from rlprof_vllm._native import Native
from rlprof_vllm._options import VllmOptions
from tests.engine_parts.lab import Driven
from tests.fakes.engines import kineto
from tests.vllm_adapter.generations import engine

STEP = (1_700_000_000_000_000_000, "execute_context_1(2)_generation_0(0)")


@pytest.fixture(name="exported")
def _exported(monkeypatch, tmp_path):
    """Return a function that exports a window with those notes and files; by what they are of."""
    driven = Driven(monkeypatch, tmp_path, Vllm, None)
    (driven.folder / "native").mkdir()

    def exported(files=(), *, way="native", ended=(), **facts):
        notes = {"way": way, "facts": facts, "answers": {"ended": ended}}
        (driven.folder / "vllm.json").write_text(json.dumps(notes))
        for name, steps, rank in files:
            (driven.folder / "native" / name).write_bytes(kineto(steps, 4000, rank))
        return {one.part or "summary": one for one in driven.call("export")}

    exported.driven = driven
    return exported


def where(exported, artifact):
    text = gzip.decompress((exported.driven.out / artifact.path).read_bytes())
    return json.loads(text)["rlprof"]["target"]["coordinates"]


def test_each_trace_is_of_its_worker(exported):
    """By its name or its own word; the frontend's is nobody's, and never idle."""
    names = ["a_rank0.1.pt.trace.json", "b_rank-5.1.pt.trace.json", "c.2.pt.trace.json"]
    files = [(names[0], [STEP], 0), (names[1], [], 0), (names[2], [STEP], 2),
             ("host_async_llm.3.pt.trace.json", [], 0)]  # fmt: skip

    made = exported(files, tp=2, pp=3, dp=1, has_layout=True, directory="/traces")

    assert {part: where(exported, one) for part, one in made.items() if part != "summary"} == {
        "worker 0": {"tp": 0, "pp": 0}, "worker 5": {"tp": 1, "pp": 2},
        "worker 2": {"tp": 0, "pp": 1}, "frontend": {},
    }  # fmt: skip
    assert [part for part, one in made.items() if "idle" in one.note] == ["worker 5"]
    summary = made["summary"]
    assert summary.status == "partial"
    assert summary.note.startswith("3 of 6 workers left no trace in /traces; only")


@pytest.mark.parametrize(("sizes", "lacks"), [((1, 1, 1), 0), ((2, 1, 1), 1), ((2, 3, 2), 11)])
def test_workers_without_a_trace_are_counted(exported, sizes, lacks):
    """Each of the layout should have left one; of an unknown layout, one is expected."""
    layout = dict(zip(("tp", "pp", "dp"), sizes, strict=True))

    (summary,) = [one for part, one in exported([("rank0.1.pt.trace.json", [STEP], 0)],
                  has_layout=True, **layout).items() if part == "summary"]  # fmt: skip

    assert (summary.status == "whole", f"{lacks} of" in summary.note) == (not lacks, bool(lacks))


def test_a_file_of_an_unknown_layout_is_still_a_workers(exported):
    """By its number alone, if it says one."""
    made = exported([("rank3.1.pt.trace.json", [STEP], 0)])

    assert where(exported, made["worker 3"]) == {"worker": 3}
    assert made["summary"].status == "whole"


@pytest.mark.parametrize(
    ("dp", "ended", "is_told"),
    [(1, [("ended", 0)], True), (1, [("ended", 3)], False), (2, [("ended", 0)], False),
     (1, [("ended", None)], True), (1, [("idle", 0)], False)],
)  # fmt: skip
def test_requests_without_a_step_are_told(exported, dp, ended, is_told):
    """A single replica has served them, by steps that nobody saw; another may have, otherwise."""
    lines = [{"id": "a", "left": None, "first_token_ts": 12.0}]
    requests.write(exported.driven.folder, requests.text_of(10.0, 20.0, lines))
    answers = [{"state": state, "iterations": count} for state, count in ended]

    summary = exported(way="worker", ended=answers, dp=dp)["summary"]

    assert ("no engine step was seen" in summary.note) is is_told


def test_what_an_engine_has_is_read_without_a_call(tmp_path):
    """Its sizes, its profiler, its methods; a handle of anything says less."""
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


def test_a_folder_other_than_the_launchs_is_told(tmp_path):
    """Only where the engine says which it has."""
    handle = engine("vllm==0.33.0", directory=tmp_path)
    opaque = SimpleNamespace(start_profile=handle.start_profile)
    told = []
    for one, wanted in ((handle, tmp_path), (handle, "/x"), (handle, None), (opaque, "/x")):
        native = Native(reach(one, ""), VllmOptions(profiler_dir=wanted and str(wanted)), ())
        asyncio.run(native.start(SimpleNamespace(start_step=7), "run-1"))
        handle.profiler.stop()
        told.append("profiler_dir" in native.unsupported)

    assert told == [False, True, False, False]


def test_an_engine_without_a_loop_is_unborn():
    """Its first caller gives it one; an LLM needs none."""
    handle, llm = engine("vllm==0.33.0"), engine("vllm==0.33.0", "LLM")
    handle.output_handler = None

    async def with_a_task():
        handle.output_handler = asyncio.current_task()
        return reach(handle, "").is_unborn, reach(handle, "").loop is asyncio.get_running_loop()

    assert (reach(handle, "").is_unborn, reach(llm, "").is_unborn) == (True, False)
    assert asyncio.run(with_a_task()) == (False, True)
