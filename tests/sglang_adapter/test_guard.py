"""The guard around a scheduler's profiler keeps its errors from ending the scheduler."""

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
"""Requests for sessions that begin by themselves, later."""


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
    """Return a function that sets the clock to some seconds from now."""
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
def test_a_request_that_would_end_the_scheduler_is_refused(scheduler, folder, words, why):
    """A request that would end the scheduler is refused with the reason; the next one is not."""
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
    """A session that begins later counts as in progress, and a stop cancels it."""
    start(scheduler, folder, **words)
    second = start(scheduler, folder)

    stopped = stop(scheduler)
    run(scheduler, *[Mode.EXTEND, Mode.DECODE] * 60)

    assert (second.success, "already in progress" in second.message) == (False, True)
    assert (stopped.success, stopped.message) == (False, RESTS)
    assert not list(folder.glob("*"))
    assert start(scheduler, folder).success


# failures.md: sglang-harm
def test_a_rank_that_cannot_make_the_folder_writes_elsewhere(scheduler, folder, caplog):
    """A rank that cannot make the folder writes to another one, and logs where."""
    folder.touch()

    begun = start(scheduler, folder / "below")
    run(scheduler, Mode.EXTEND)

    assert (begun.success, stop(scheduler).success) == (True, True)
    assert "this rank writes into" in caplog.text
    assert "this rank writes into" in _guard.last_why
    assert len(list(scheduler.part.torch_profiler_output_dir.glob("*-TP-0.trace.json.gz"))) == 1


# failures.md: sglang-harm
@pytest.mark.parametrize("method", ["stop", "export_chrome_trace"])
def test_an_error_of_torchs_profiler_does_not_part_the_ranks(scheduler, folder, method):
    """After an error of torch's profiler the rank meets the others, and records again."""
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
def test_an_error_after_skipped_steps_ends_no_step(scheduler, folder):
    """An error in a session that began after skipped steps ends no step; its reason is kept."""
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
def test_an_error_of_the_profiler_in_a_step_ends_only_the_session(scheduler, folder, words, lost):
    """If the profiler raises in a step, the step runs, and the next session is recorded."""
    start(scheduler, folder, **words)
    setattr(scheduler.part, lost, "no number")

    assert run(scheduler, Mode.EXTEND, Mode.DECODE) == ["tokens", "tokens"]
    assert "TypeError" in _guard.last_why
    assert start(scheduler, folder).success


# failures.md: sglang-harm
def test_sglangs_second_profiler_is_never_started(folder):
    """A request for SGLang's second profiler is refused with its variable, and not passed on."""
    asked, request = [], ProfileReq(output_dir=str(folder))

    answer = inside.asked(lambda *given: asked.append(given), SimpleNamespace(), request)

    assert "SGLANG_PROFILE_V2" in answer.message
    assert (answer.success, asked) == (False, [])


# failures.md: sglang-refused
def test_ranks_that_disagree_meet_at_the_stop(ranks, folder):
    """If torch refuses on one of two ranks, both succeed in the stop and meet there once."""
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
    """If torch refuses a delayed start, which SGLang ignores, the reason is kept."""
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
def test_stages_do_not_overlap(scheduler, folder, what):
    """Sessions of prefill and decode do not overlap, each has its trace, and a start works."""
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
    """A rank is alone if the group in which ranks meet has one member, or is missing."""
    distributed = SimpleNamespace(get_world_size=lambda group: group)
    monkeypatch.setattr(sys.modules["torch"], "distributed", distributed, raising=False)

    assert _guard._is_alone(SimpleNamespace(dp_tp_cpu_group=ranks)) is is_alone


# failures.md: sglang-harm
@pytest.mark.parametrize("said", [{}, {"profile_in_progress": True, "profile_by_stage": True}])
def test_only_a_session_that_waits_is_disarmed(said):
    """A stage session in progress, or a part without stages, is not changed."""
    part = SimpleNamespace(**said)

    _guard._disarm(part)

    assert vars(part) == said


BUSY = "rlprof: a window of rlprof is open in this engine; ask again when it is over"


def order(scheduler, verb, run="/nowhere", limits=None):
    """Send an order that chooses another scheduler; return the answer."""
    workers = orders(run, {"limits": limits}, (), ranks=(0, 1), chosen=(1,))
    window = rlprof.Window(2, 3, "rollout")
    text = workers.prepare() if verb == "prepare" else getattr(workers, verb)(window)
    scheduler.get_internal_state()
    start(scheduler, "rlprof:" + json.dumps({"order": text, "iterations": {}}))
    return json.loads(scheduler.get_internal_state().internal_state["rlprof"]["answer"])


# failures.md: sglang-profiled
def test_a_request_to_profile_is_refused_while_a_window_is_open(scheduler, folder):
    """Even a scheduler that is not chosen refuses to profile until the run's own window ends."""
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
    """A window is refused while another user's session could begin inside it."""
    start(scheduler, folder, **words)

    assert order(scheduler, "end")["state"] == "not chosen"
    answer = order(scheduler, "begin")
    stop(scheduler)

    assert answer["state"] == "refused"
    assert answer["why"].startswith("somebody's session of SGLang's profiler will begin by itself")
    assert order(scheduler, "begin")["state"] == "not chosen"


# failures.md: sglang-orphan
def test_a_session_whose_run_has_gone_ends_by_itself(scheduler, folder, later):
    """An overdue session of rlprof ends with its trace; another user's session continues."""
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
def test_ranks_of_one_engine_only_report_an_overdue_session(ranks, folder, later):
    """Ranks that must stop together do not end an overdue session, but report it as overdue."""
    for rank in ranks:
        start(rank, ours(folder))
    later(25)
    for rank in ranks:
        run(rank, Mode.DECODE)

    assert [rank.part.profile_in_progress for rank in ranks] == [True, True]
    assert [_guard.is_overdue(rank.part) for rank in ranks] == [True, True]


# failures.md: sglang-orphan
def test_an_unended_window_expires_by_the_limits_of_its_run(scheduler, folder, later):
    """An unended window blocks other sessions only until `window_s` and the stop timeout pass."""
    order(scheduler, "begin", limits={"window_s": 10, "stop_timeout_s": 5})
    later(14)
    before = start(scheduler, folder).message
    later(16)

    assert (before, start(scheduler, folder).message) == (BUSY, "Succeeded")
