"""Two torch profilers in one scheduler would end it: SGLang's own never runs inside a window."""

from __future__ import annotations

import json
import sys
import time
from types import ModuleType, SimpleNamespace

import attrs
import pytest

import rlprof
from rlprof.rundir import Here
from rlprof_sglang import _refusals, inside

BUSY = "rlprof: a window of rlprof is open in this engine; ask again when it is over"


@attrs.define
class Reply:
    """What a scheduler answers a request to profile."""

    success: bool
    message: str


@attrs.define
class Profiler:
    """What holds a scheduler's profiler, where none has begun."""

    profile_in_progress: bool = False
    profile_by_stage: bool = False
    profiler_prefill_ct: int | None = None
    profiler_decode_ct: int | None = None
    profiler_target_prefill_ct: int | None = None
    forward_ct: int = 0
    profiler_start_forward_ct: int | None = None
    torch_profiler: object = None
    torch_profiler_output_dir: str | None = None


@pytest.fixture(name="part", autouse=True)
def _part(monkeypatch):
    """Return the profiler of a scheduler that has said something of itself."""
    structs = ModuleType("sglang.srt.managers.io_struct")
    structs.ProfileReqOutput = Reply
    for name in ("sglang", "sglang.srt", "sglang.srt.managers"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, structs.__name__, structs)
    part = Profiler()
    monkeypatch.setattr(_refusals, "ours_until", 0.0)
    scheduler = SimpleNamespace(profiler_manager=part, tp_rank=0, pp_rank=0, dp_rank=0)
    monkeypatch.setattr(inside, "_scheduler", scheduler)
    monkeypatch.setattr(inside, "_answer", "")
    return part


def order(verb, run="/nowhere", limits=None):
    """Have an order come that chooses another scheduler; return what was answered."""
    given = {
        "run": run,
        "config": {"limits": limits},
        "role": "rollout",
        "replica": 0,
        "world_size": 2,
    }
    given["leader"] = attrs.asdict(rlprof.Leader(Here.now(), ""))
    workers = rlprof.Workers(ranks=(0, 1), chosen=(1,), given=given)
    window = rlprof.Window(2, 3, "rollout")
    text = workers.prepare() if verb == "prepare" else getattr(workers, verb)(window)
    request = SimpleNamespace(output_dir="rlprof:" + json.dumps({"order": text, "iterations": {}}))
    assert inside.asked(None, None, request).success
    return json.loads(inside._answer)


def started(part):
    """Have somebody ask to profile; return what was answered."""
    kind = SimpleNamespace(name="START_PROFILE")
    request = SimpleNamespace(req_type=kind, output_dir=None, num_steps=None, activities=None)
    return inside.asked(lambda *_: Reply(True, "Succeeded"), part, request)


# failures.md: sglang-profiled
def test_a_request_to_profile_is_refused_while_a_window_is_open(part):
    """By every scheduler, chosen or not, for ranks that do not agree wait for each other."""
    answers = [started(part).message]
    for verb in ("prepare", "begin", "end"):
        assert order(verb)["state"] == "not chosen"
        answers.append(started(part).message)

    assert answers == ["Succeeded", "Succeeded", BUSY, "Succeeded"]


# failures.md: sglang-profiled
def test_no_window_opens_where_a_session_would_begin_inside_it(part):
    """One that waits for its first step would begin on top of the window."""
    part.profiler_start_forward_ct = 100

    answer = order("begin")

    assert answer["state"] == "refused"
    assert answer["why"].startswith("somebody's session of SGLang's profiler will begin by itself")
    part.profiler_start_forward_ct = None
    assert started(part).success


def test_no_window_opens_where_another_stage_is_to_come(part):
    """By stage a session that is on is followed by another one, which would begin inside it."""
    part.profile_in_progress = part.profile_by_stage = True
    part.profiler_target_prefill_ct, part.profiler_prefill_ct, part.profiler_decode_ct = 5, 0, 2

    assert order("begin")["state"] == "refused"
    part.profiler_prefill_ct = 1
    assert order("begin")["state"] == "not chosen"


def test_the_end_of_another_runs_window_leaves_this_one_open(part):
    """Two runs may record one server; nobody else's session begins inside the later window."""
    order("begin", run="/first")
    order("begin", run="/second")
    order("end", run="/first")

    assert started(part).message == BUSY
    order("end", run="/second")
    assert started(part).success


# failures.md: sglang-orphan
def test_a_window_that_nobody_ended_is_over_by_its_runs_limits(part, monkeypatch):
    """As long as a window and its stop may take; no longer are others kept from asking."""
    order("begin", limits={"window_s": 10, "stop_timeout_s": 5})
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 14)
    before = started(part).message
    monkeypatch.setattr(time, "monotonic", lambda: now + 16)

    assert [before, started(part).message] == [BUSY, "Succeeded"]
