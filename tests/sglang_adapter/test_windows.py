"""Windows of an engine like SGLang's: what is asked, what is answered, and what is left."""

import gzip
import json
from types import SimpleNamespace

import pytest

from rlprof import CaptureError
from rlprof_engine import requests
from rlprof_engine.iterations import Iterations
from rlprof_engine.recording import IDLE
from rlprof_sglang import Sglang, _guard
from rlprof_sglang._facts import Facts, looked_inside, of_arguments, seen
from rlprof_sglang._native import FILES
from tests.engine_parts.lab import Driven, orders
from tests.fakes.engines import kineto
from tests.fakes.sglang_engines import STOP, engine

pytestmark = pytest.mark.usefixtures("inside")


@pytest.fixture(name="driven")
def _driven(monkeypatch, tmp_path):
    """Return a function that makes a plugin with an engine, which it has as `.handle`."""

    def driven(handle=None, **options):
        driven.handle = handle or engine()
        return Driven(monkeypatch, tmp_path, Sglang, driven.handle, **options)

    return driven


def test_a_scheduler_records_the_steps_asked_for(driven):
    """Its answers are left with the facts, and beside it the life of the requests."""
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


def test_what_goes_wrong_in_a_window_is_said(driven):
    """Nothing is asked of an engine that nobody has configured, or that records already."""
    one = driven()
    one.call("stop")
    with pytest.raises(CaptureError, match="was not configured"):
        one.call("start")
    one.call("configure")
    one.call("stop")
    assert not list(one.folder.iterdir())
    one.call("start")
    with pytest.raises(CaptureError, match="a window is open already"):
        one.call("start")
    driven.handle.tokenizer_manager.raises["start_profile"] = KeyError("no answer")

    with pytest.raises(CaptureError, match="schedulers cannot be reached: KeyError: 'no answer'"):
        one.call("stop")

    (summary,) = [made for made in one.call("export") if made.kind == "files"]
    assert (summary.status, "no process of the engine answered" in summary.note) == (
        "partial",
        True,
    )


NATIVE = [("start_profile", "idle"), ("start_profile", "running"), ("stop_profile", "running")]


def test_sglangs_own_profiler_records_a_window(driven, tmp_path):
    """Each scheduler leaves a trace, and says how many steps it ran."""
    one = driven(engine(tp=2), way="native", profiler_dir=str(tmp_path / "traces"))

    found = one.record(lambda: driven.handle.generate("jest"))

    assert found.said.applied["way"] == "native"
    assert (found.notes["ran"], found.notes["whys"], found.notes["lost"]) == ({"0": 4}, [], "")
    assert found.notes["folder"].startswith(str(tmp_path / "traces"))
    assert len(list((one.folder / FILES).iterdir())) == 2
    assert [it.status for it in found.made.values()] == ["whole"] * 4
    assert list((tmp_path / "traces").iterdir()) == []


@pytest.mark.parametrize(
    ("hook", "exc", "why", "later"),
    [
        ("start_profile", RuntimeError("already in progress"), "somebody else is profiling", ""),
        ("start_profile", RuntimeError("no disk"), "start_profile: no disk", ""),
        ("start_profile", TypeError("no such word"), "start_profile: no such word", ""),
        ("stop_profile", KeyError("gone"), "stop_profile: KeyError", "is unknown"),
        ("stop_profile", RuntimeError("not in progress"), "", ""),
    ],
)
def test_an_error_of_the_engines_spoils_its_window(driven, tmp_path, hook, exc, why, later):
    """A stop that failed leaves the state unknown, so that its schedulers are left alone."""
    one = driven(way="native", profiler_dir=str(tmp_path / "traces"))
    asked = driven.handle.tokenizer_manager
    one.call("configure")
    asked.raises[hook] = exc
    said = []
    for name in ("start", "stop"):
        try:
            one.call(name)
        except CaptureError as exc_:
            said.append(str(exc_))
    asked.raises.clear()

    assert [why in one for one in said] == [True] * bool(why)
    stops = 0 if isinstance(exc, TypeError) or "already" in str(exc) else 1
    assert len(asked.called("stop_profile")) == stops
    asked.replica.ask(STOP)
    if later:
        with pytest.raises(CaptureError, match=later):
            one.call("start")
    else:
        assert one.call("start").applied["way"] == "native"


@pytest.mark.parametrize("is_overdue", [False, True])
def test_a_session_that_runs_there_is_left_unless_its_run_is_gone(driven, monkeypatch, is_overdue):
    """Our code in the schedulers says whose it is."""
    one = driven(way="native", profiler_dir=str(_guard.tempfile.tempdir))
    one.call("configure")
    driven.handle.start_profile(output_dir="/tmp/theirs")
    monkeypatch.setattr(_guard, "until", 1.0 if is_overdue else 0.0)

    if is_overdue:
        assert one.call("start").applied["way"] == "native"
        return
    with pytest.raises(CaptureError, match="somebody else is profiling this engine"):
        one.call("start")
