"""Windows that a session opens for its steps and phases, and problems when it opens none."""

import asyncio
import logging
import threading

import pytest

import rlprof
from tests.cases import cases
from tests.core.steps import record, through, train
from tests.core.test_engines import _given  # noqa: F401 -- a fixture
from tests.waiting import wait_until


def starts(calls):
    return [call[2] for call in calls if call[1] == "start"]


def hooks(calls):
    return [call[1] for call in calls if call[1] != "configure"]


# failures.md: all-whole
@pytest.mark.slow
@cases(
    "changes, steps, opened",
    ({"steps": [2, 4], "roles": {"actor": {"phases": ["update"]}}}, range(1, 6),
     ["2/update", "4/update"]),
    ({}, (5, 6, 5), ["5/rollout", "5/update", "6/rollout", "6/update",
                     "5/rollout.1", "5/update.1"]),
    ({"mode": "continuous", "steps": [1, 2]}, range(8), ["1", "2"]),
    ({"mode": "continuous", "steps": ["1-3", 6], "join_steps": True}, range(8), ["1-3", "6"]),
    ids=["discrete", "after a rollback", "continuous", "joined"],
)  # fmt: skip
def test_each_chosen_phase_step_or_stretch_has_a_window(config, calls, changes, steps, opened):
    """Each chosen phase, step or stretch has one window; a step that recurs has more."""
    record(config(**changes), steps, "rollout", "update")

    assert starts(calls) == opened
    assert hooks(calls)[:3] == ["start", "push", "pop"]
    assert hooks(calls).count("stop") == len(opened)


def test_a_rank_that_is_not_chosen_writes_spans_only(config, calls):
    """A rank that is not chosen writes spans and starts no tool."""
    prof = record(config(roles={"actor": {"ranks": [1]}}), rank=0, world_size=2)

    assert calls == [("fake", "configure", "launch", "actor 0/1")]
    spans = [span.name for span in rlprof.read(prof.run_dir).spans()]
    assert spans == ["rollout", "step 1"]


@pytest.mark.slow
def test_tools_start_in_order_and_stop_in_reverse_on_the_threads_they_need(config, calls):
    """Tools start in order and stop in reverse, on the phase's thread or on one of their own."""
    record(config(tool=["fake", "anywhere", "bare"]))

    called = [(*call[:2], *call[3:]) for call in calls if call[1] in ("start", "stop")]
    here, beside = threading.current_thread().name, "rlprof-anywhere"
    assert called == [
        ("fake", "start", here), ("anywhere", "start", beside), ("bare", "start"),
        ("anywhere", "stop", beside), ("fake", "stop", here),
    ]  # fmt: skip


@pytest.mark.slow
def test_minibatches_reach_a_tool_only_while_it_records(config, calls):
    """minibatch() reaches a tool inside a window and does nothing outside."""
    with rlprof.open(config()) as prof:
        prof.step(1)
        prof.minibatch()
        with prof.phase("update_actor"):
            prof.minibatch()
            prof.minibatch()

    assert hooks(calls) == ["start", "push", "minibatch", "minibatch", "pop", "stop"]


# failures.md: skipped-phase
def test_a_chosen_step_without_a_phase_is_reported(config, caplog):
    """In discrete mode, a chosen step without a phase is skipped with a reason and logged."""
    with caplog.at_level(logging.WARNING, "rlprof"), rlprof.open(config(steps=[3])) as prof:
        prof.step(3)
    with rlprof.open(config(roles={"actor": {"phases": ["updte"]}})) as other:
        train(other, [1], "update")

    (skipped,) = rlprof.read(prof.run_dir).skipped
    assert skipped.step == 3
    told = "the step entered no phase, and discrete mode records phases; mark them with "
    assert skipped.reason == f"{told}prof.phase(...), or set mode: continuous"
    assert "step 3: the step entered no phase" in caplog.text
    assert "updte; it has: update; did you mean 'update'? Training goes on" in caplog.text


# failures.md: shared-window
@pytest.mark.slow
def test_overlapping_phases_of_asyncio_tasks_share_the_first_window(config, calls):
    """Overlapping phases of asyncio tasks share the window of the first."""

    async def work(prof, name, seconds):
        async with prof.phase(name):
            await asyncio.sleep(seconds)

    async def step(prof):
        prof.step(1)
        await asyncio.gather(work(prof, "a", 0.02), work(prof, "b", 0.01))

    with rlprof.open(config()) as prof:
        asyncio.run(step(prof))

    assert starts(calls) == ["1/a"]
    assert hooks(calls).count("push") == hooks(calls).count("pop") == 2


# failures.md: window-time
@pytest.mark.slow
def test_a_window_past_its_time_is_closed(config, calls, shell):
    """A window that exceeds limits.window_s is closed early, and manifest and `ls` report it."""
    with rlprof.open(config(limits={"window_s": 0.01})) as prof:
        prof.step(1)
        with prof.phase("rollout"):
            threading.Event().wait(0.02)
            with prof.phase("inner"):
                assert not prof.is_recording

    (capture,) = rlprof.read(prof.run_dir).captures
    assert starts(calls) == ["1/rollout"]
    assert capture.notes == ("closed early: limits.window_s 0.01 was reached",)
    assert (capture.state, "whole, cut" in shell("ls", prof.run_dir)[1]) == ("whole", True)


# failures.md: bytes-spent
@pytest.mark.slow
def test_no_window_is_opened_once_the_bytes_are_spent(config, calls):
    """A rank that has used its share of limits.bytes skips its windows with that reason."""
    roles = {"actor": {}, "critic": {"ranks": [0, 1]}}  # three ranks
    with rlprof.open(config(limits={"bytes": 30}, roles=roles), role="actor") as prof:
        train(prof, [1])
        wait_until(lambda: prof.why_full)
        train(prof, [2])

    run = rlprof.read(prof.run_dir)
    assert starts(calls) == ["1/rollout"]
    reason = "its share of limits.bytes, 10, is used up"
    assert [(s.step, s.reason) for s in run.skipped] == [(2, reason)]


def problems(prof):
    return rlprof.read(prof.run_dir).problems


@pytest.mark.slow
@cases(
    "changes, told",
    ({"steps": [2, "4-200"]}, [1, 2, 3, 4, 1]),
    ({"steps": {"every": 100, "first": 50}}, range(5)),
    ({"steps": "none"}, range(5)),
    ({"steps": [200], "roles": {"actor": {"ranks": [1]}}}, range(5)),
    ids=["a stretch was cut short", "a rule without end", "none asked", "another rank"],
)
def test_a_run_that_went_as_configured_has_no_problem(config, changes, told):
    """Steps not asked of this process, or that a longer run may reach, are no problem."""
    prof = record(config(**changes), told, role="actor", rank=0, world_size=2)

    assert problems(prof) == ()


# failures.md: no-step, skipped-phase, bad-step
@cases(
    "changes, steps, reason",
    ({"steps": [2, "4-70", "80-90", 99]}, [0, 1, 2, 3, 4, 1],
     "the config also asks for steps 80-90, 99; this process went through steps 0-4"),
    ({"roles": {"actor": {"phases": ["rolout", "update"]}}}, [2],
     "roles.actor.phases: no step to record had rolout; did you mean 'rollout'?"),
    ({}, ["1", "2"], "step: expected a whole number, got '1'; this step is not recorded"),
)  # fmt: skip
def test_what_a_run_lacks_of_its_config_is_a_problem(config, caplog, changes, steps, reason):
    """Chosen steps or phases that were not reached, or a step that is no number, are a problem."""
    prof = record(config(**changes), steps, "rollout", "update")

    assert problems(prof) == (f"actor 0/1: {reason}",)
    assert caplog.text.count(reason) == 1


# failures.md: no-step
def test_phases_outside_any_step_are_a_problem(config, caplog):
    """Phases outside any step are one problem of the run, which is logged once."""
    with rlprof.open(config()) as prof:
        for _ in range(3):
            through(prof.phase("rollout"))

    reason = "phases were entered outside any step; call prof.steps(...) or prof.step(...)"
    assert problems(prof) == (f"actor 0/1: {reason}",)
    assert caplog.text.count(reason) == 1


# failures.md: engine-missing
@pytest.mark.slow
def test_an_engine_that_was_not_attached_is_missing(given, shell):
    """An engine that was not attached is missing, in the run and in `ls`."""
    prof = record(given(), range(3), "update", role="actor")

    missing = rlprof.read(prof.run_dir).missing
    assert [(target.role, target.replica) for target in missing] == [("rollout", 0)]
    assert "missing:\n  rollout: no engine was attached" in shell("ls", prof.run_dir)[1]
