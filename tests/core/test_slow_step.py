"""Slow steps ask for a recording of the next one, a bounded number of times."""

import pytest

import rlprof
from rlprof.config import load_config
from rlprof_live._slow import SlowSteps


def watched(config, seconds, **rule):
    """Let steps take *seconds*; return the steps that were found slow, by what is said of them."""
    checked = load_config(config(slow_step=rule))
    slow = SlowSteps(checked.slow_step)
    for step, took_s in enumerate(seconds):
        slow.ended(step, took_s)
    return [request.by for request in slow.requests(checked)]


@pytest.mark.slow
def test_a_slow_step_has_the_next_one_recorded(config, shell):
    """It is asked for like any request, and says in the manifest what it is due to."""
    given = config(steps="none", slow_step={"times": 1e5}, roles={"actor": {"ranks": "all"}})
    with rlprof.open(given) as prof:
        for step in prof.steps(range(10)):
            if step == 7:  # the steps before are as good as nothing
                prof._step_ns -= 10**13
            prof.scribe._wake.set()
            prof.scribe.flush()
            prof.means.listeners.settle()
            with prof.phase("rollout"):
                pass

    run = rlprof.read(prof.run_dir)
    (answer,) = run.answers
    assert answer.state == "served"
    assert answer.asked["by"].startswith("rlprof: step 7 took 1")
    assert {answer.id} == {capture.request for capture in run.captures}
    assert answer.steps[0] in (8, 9)
    served = f"{answer.id}, actor 0/1: served step {answer.steps[0]} (step 7 took 1"
    assert served in shell("ls", prof.run_dir)[1]


def test_what_is_slow_is_measured_by_the_median(config):
    """One slow step does not make the next one usual; a new pace becomes usual in time."""
    steady = [1.0] * 6

    assert watched(config, [*steady, 1.9, 1.9]) == []
    assert watched(config, [*steady, 2.1, 1.0]) == [
        "rlprof: step 6 took 2.1 s, 2.1 times the median of 1 s"
    ]
    assert len(watched(config, [*steady, *[9.0] * 60], most=1)) == 1
    assert watched(config, [60.0, 1.0, 1.0, 30.0, 1.0]) == []  # what warms up tells no pace
    assert watched(config, [*[0.001] * 6, 0.09]) == []  # ten times next to nothing


@pytest.mark.slow
def test_a_step_that_is_recorded_is_no_measure(config):
    """Recording takes time of its own."""
    with rlprof.open(config(steps=[7], slow_step={})) as prof:
        for step in prof.steps(range(10)):
            with prof.phase("rollout"):
                if step == 7:
                    prof._step_ns -= 10**12
            prof.scribe.flush()

    assert rlprof.read(prof.run_dir).answers == ()
