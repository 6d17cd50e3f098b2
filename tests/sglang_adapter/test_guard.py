"""A scheduler's profiler with the guard around it: what would end the scheduler does not."""

import gzip
import json
import sys
import time
from types import SimpleNamespace

import pytest

import rlprof
from rlprof_sglang import _guard, inside
from tests.cases import cases
from tests.engine_parts.lab import orders
from tests.fakes.sglang_engines import STOP, ProfileReq, manager
from tests.fakes.sglang_schedulers import RESTS, Mode, batch

pytestmark = pytest.mark.usefixtures("modules", "inside")
WAITING = [{"start_step": 100}, {"profile_by_stage": True, "num_steps": 3}]
"""Sessions that begin by themselves."""


@pytest.fixture(name="scheduler")
def _scheduler():
    """Return a scheduler with the guard around its profiler."""
    return manager().replica.schedulers[0]


@pytest.fixture(name="ranks")
def _ranks(monkeypatch):
    """Return two schedulers of one engine, which wait for each other at a stop."""
    monkeypatch.setattr(_guard, "_is_alone", lambda _: False)
    return manager(tp=2).replica.schedulers


@pytest.fixture(name="folder")
def _folder(tmp_path):
    return tmp_path / "traces"


@pytest.fixture(name="later")
def _later(monkeypatch):
    """Return what lets so many seconds pass."""
    now = time.monotonic()
    monkeypatch.setattr(_guard, "until", 0.0)
    return lambda seconds: monkeypatch.setattr(time, "monotonic", lambda: now + seconds)


def start(scheduler, folder, **words):
    return scheduler.part._profile(ProfileReq(output_dir=str(folder), **words))


def stop(scheduler):
    return scheduler.part._profile(STOP)


def run(scheduler, *modes):
    return [scheduler.run_batch(batch(mode)) for mode in modes]


def ours(folder, **words):
    said = {"native": str(folder), "skip": 0, "count": None, "longest_s": 20} | words
    return f"rlprof:{json.dumps(said)}"


# failures.md: sglang-harm
@cases(
    "words, why",
    ({"profile_by_stage": True}, "rlprof: profile_by_stage needs num_steps"),
    ({"activities": ["CPU", "MEM"]}, "AssertionError: Torch not compiled with CUDA enabled"),
    ({}, "Kineto is already active"),
)
def test_what_it_would_not_survive_is_refused(scheduler, folder, words, why):
    """With an answer, for nobody may wait for one; the next session is recorded."""
    scheduler.part.refusal = None if words else RuntimeError(why)

    refused = start(scheduler, folder, **words)
    run(scheduler, Mode.EXTEND, Mode.DECODE)
    scheduler.part.refusal = None

    assert not refused.success
    assert refused.message.endswith(why)
    assert start(scheduler, folder, num_steps=1).success


# failures.md: sglang-profiled
@pytest.mark.parametrize("words", WAITING)
def test_a_session_that_waits_is_in_progress_and_a_stop_disarms_it(scheduler, folder, words):
    """Of itself SGLang would begin it on somebody's later request."""
    start(scheduler, folder, **words)
    second = start(scheduler, folder)

    stopped = stop(scheduler)
    run(scheduler, *[Mode.EXTEND, Mode.DECODE] * 60)

    assert (second.success, "already in progress" in second.message) == (False, True)
    assert (stopped.success, stopped.message) == (False, RESTS)
    assert not list(folder.glob("*"))
    assert start(scheduler, folder).success


# failures.md: sglang-harm
def test_a_folder_that_cannot_be_made_is_another(scheduler, folder, caplog):
    """The same answer on each rank, for another host's may be able to; the log says where."""
    folder.touch()

    begun = start(scheduler, folder / "below")
    run(scheduler, Mode.EXTEND)

    assert (begun.success, stop(scheduler).success) == (True, True)
    assert "this rank writes into" in caplog.text
    assert "this rank writes into" in _guard.last_why
    assert len(list(scheduler.part.torch_profiler_output_dir.glob("*-TP-0.trace.json.gz"))) == 1


# failures.md: sglang-harm
@pytest.mark.parametrize("method", ["stop", "export_chrome_trace"])
def test_what_torchs_profiler_raises_is_kept_from_the_ranks(scheduler, folder, method):
    """They wait for each other after it: none may be missing. The next session is recorded."""
    scheduler.part.fails[method] = OSError("No space left on device")
    start(scheduler, folder)
    run(scheduler, Mode.EXTEND)

    stopped = stop(scheduler)
    why, met = _guard.last_why, scheduler.part.met
    scheduler.part.fails.clear()
    again = start(scheduler, folder)
    run(scheduler, Mode.EXTEND)
    stop(scheduler)

    assert (stopped.success, again.success, met) == (True, True, 1)
    assert f"{method}: OSError: No space left on device" in why
    assert len(list(folder.iterdir())) == (2 if method == "stop" else 1)


# failures.md: sglang-harm
def test_a_profiler_that_begins_by_itself_is_kept_quiet_too(scheduler, folder):
    """After the steps passed over nobody answers any more; what it raises goes nowhere."""
    scheduler.part.fails["export_chrome_trace"] = OSError("No space left on device")
    run(scheduler, *[Mode.DECODE] * 3)
    start(scheduler, ours(folder, skip=2, count=1))

    assert scheduler.part.profiler_start_forward_ct == 6
    assert run(scheduler, *[Mode.DECODE] * 5) == ["tokens"] * 5
    assert "No space left on device" in _guard.last_why
    assert (scheduler.part.profile_in_progress, scheduler.part.met) == (False, 1)


# failures.md: sglang-harm
@cases(
    "words, lost",
    ({"profile_by_stage": True, "num_steps": 2}, "profiler_prefill_ct"),
    ({"num_steps": 5}, "profiler_target_forward_ct"),
    ids=["that waits", "in progress"],
)
def test_a_step_that_raises_ends_the_session_alone(scheduler, folder, words, lost):
    """The forward step runs, and the next session is recorded."""
    start(scheduler, folder, **words)
    setattr(scheduler.part, lost, "no number")

    assert run(scheduler, Mode.EXTEND, Mode.DECODE) == ["tokens", "tokens"]
    assert "TypeError" in _guard.last_why
    assert start(scheduler, folder).success


# failures.md: sglang-harm
def test_sglangs_second_profiler_is_never_started(folder):
    """Stopped, it ends the scheduler; its state has no names that we know."""
    asked, request = [], ProfileReq(output_dir=str(folder))

    answer = inside.asked(lambda *given: asked.append(given), SimpleNamespace(), request)

    assert "SGLANG_PROFILE_V2" in answer.message
    assert (answer.success, asked) == (False, [])


# failures.md: sglang-refused
def test_ranks_that_disagree_meet_at_the_stop(ranks, folder):
    """Torch refuses on one of two; each comes to where they wait for each other, and once."""
    ranks[1].part.refusal = RuntimeError("busy")

    begun = [start(rank, folder).success for rank in ranks]
    assert ranks[1].part.torch_profiler_output_dir == folder
    for rank in ranks:
        run(rank, Mode.EXTEND, Mode.DECODE)
    stopped = [stop(rank).success for rank in ranks]

    assert (begun, stopped) == ([True, False], [True, True])
    assert [rank.part.met for rank in ranks] == [1, 1]
    assert [file.name.partition("TP-")[2][0] for file in folder.iterdir()] == ["0"]


# failures.md: sglang-refused
def test_a_session_that_does_not_begin_at_its_step_is_noticed(scheduler, folder):
    """SGLang drops what torch says then; it is told with the window."""
    assert start(scheduler, folder, start_step=2, num_steps=1).success
    scheduler.part.refusal = RuntimeError("busy")

    run(scheduler, Mode.EXTEND, Mode.DECODE, Mode.DECODE)

    assert _guard.last_why.endswith(("RuntimeError: busy", "the scheduler's log says why"))
    assert stop(scheduler).message == RESTS


STAGES = {
    "one after the other": ("EDDDDD", {"EXTEND": "E", "DECODE": "DD"}),
    "decoding first": ("DEDDED", {"DECODE": "DED", "EXTEND": "E"}),
    "one within the other": ("EDDEEEDD", {"EXTEND": "E", "DECODE": "DEEED"}),
}
"""The steps that run, and those in the trace of each stage, by their first letters."""


# failures.md: sglang-harm
@pytest.mark.parametrize("what", STAGES)
def test_stages_do_not_meet(scheduler, folder, what):
    """Torch would write into freed memory, and SGLang lose a trace; the next start is taken."""
    modes, expected = STAGES[what]
    start(scheduler, folder, profile_by_stage=True, num_steps=2)

    run(scheduler, *[Mode.EXTEND if mode == "E" else Mode.DECODE for mode in modes])

    found = {}
    for file in folder.iterdir():
        events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
        stage = file.name.partition(".trace")[0].rpartition("-")[2]
        found[stage] = "".join(one["name"][5] for one in events)
    assert found == expected
    assert stop(scheduler).message == RESTS
    assert start(scheduler, folder, num_steps=1).success


# failures.md: sglang-harm
@pytest.mark.parametrize(("ranks", "is_alone"), [(None, True), (1, True), (2, False)])
def test_a_rank_knows_whether_others_wait_for_it(monkeypatch, ranks, is_alone):
    """By the group in which they meet, where there is one."""
    distributed = SimpleNamespace(get_world_size=lambda group: group)
    monkeypatch.setattr(sys.modules["torch"], "distributed", distributed, raising=False)

    assert _guard._is_alone(SimpleNamespace(dp_tp_cpu_group=ranks)) is is_alone


# failures.md: sglang-harm
@pytest.mark.parametrize("said", [{}, {"profile_in_progress": True, "profile_by_stage": True}])
def test_what_runs_or_is_not_there_is_not_disarmed(said):
    """A session of stages goes on; a part without stages gets none."""
    part = SimpleNamespace(**said)

    _guard._disarm(part)

    assert vars(part) == said


BUSY = "rlprof: a window of rlprof is open in this engine; ask again when it is over"


def order(scheduler, verb, run="/nowhere", limits=None):
    """Have an order come that chooses another scheduler; return what was answered."""
    workers = orders(run, {"limits": limits}, (), ranks=(0, 1), chosen=(1,))
    window = rlprof.Window(2, 3, "rollout")
    text = workers.prepare() if verb == "prepare" else getattr(workers, verb)(window)
    scheduler.get_internal_state()
    start(scheduler, "rlprof:" + json.dumps({"order": text, "iterations": {}}))
    return json.loads(scheduler.get_internal_state().internal_state["rlprof"]["answer"])


# failures.md: sglang-profiled
def test_a_request_to_profile_is_refused_while_a_window_is_open(scheduler, folder):
    """By every scheduler, chosen or not; the end of another run's window leaves this one open."""
    answers = []
    for verb in ("prepare", "begin", "end"):
        assert order(scheduler, verb)["state"] == "not chosen"
        answers.append(start(scheduler, folder).message)
        stop(scheduler)

    assert answers == ["Succeeded", BUSY, "Succeeded"]
    order(scheduler, "begin", run="/first")
    order(scheduler, "begin", run="/second")
    order(scheduler, "end", run="/first")
    assert start(scheduler, folder).message == BUSY
    order(scheduler, "end", run="/second")
    assert start(scheduler, folder).success


# failures.md: sglang-profiled
@pytest.mark.parametrize("words", WAITING)
def test_no_window_opens_where_a_session_would_begin_inside_it(scheduler, folder, words):
    """Two torch profilers in one scheduler would end it."""
    start(scheduler, folder, **words)

    assert order(scheduler, "end")["state"] == "not chosen"
    answer = order(scheduler, "begin")
    stop(scheduler)

    assert answer["state"] == "refused"
    assert answer["why"].startswith("somebody's session of SGLang's profiler will begin by itself")
    assert order(scheduler, "begin")["state"] == "not chosen"


# failures.md: sglang-orphan
def test_a_session_whose_run_has_gone_ends_by_itself(scheduler, folder, later):
    """With its trace; it would fill the memory. Somebody else's goes on for ever."""
    start(scheduler, ours(folder))
    run(scheduler, Mode.EXTEND, Mode.DECODE)
    on = [scheduler.part.profile_in_progress]
    later(25)
    run(scheduler, Mode.DECODE)
    on.append(scheduler.part.profile_in_progress)
    start(scheduler, folder / "theirs")
    later(1e6)
    run(scheduler, Mode.DECODE)

    assert (on, scheduler.part.profile_in_progress) == ([True, False], True)
    assert len(list(folder.glob("*.gz"))) == 1


# failures.md: sglang-orphan
def test_ranks_of_one_engine_leave_that_to_the_next_run(ranks, folder, later):
    """Each would wait, at a step of its own, for the others; they say that it is overdue."""
    for rank in ranks:
        start(rank, ours(folder))
    later(25)
    for rank in ranks:
        run(rank, Mode.DECODE)

    assert [rank.part.profile_in_progress for rank in ranks] == [True, True]
    assert [_guard.is_overdue(rank.part) for rank in ranks] == [True, True]


# failures.md: sglang-orphan
def test_a_window_that_nobody_ended_is_over_by_its_runs_limits(scheduler, folder, later):
    """As long as a window and its stop may take; no longer are others kept from asking."""
    order(scheduler, "begin", limits={"window_s": 10, "stop_timeout_s": 5})
    later(14)
    before = start(scheduler, folder).message
    later(16)

    assert (before, start(scheduler, folder).message) == (BUSY, "Succeeded")
