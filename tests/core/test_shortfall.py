"""Where nothing, or less than asked, is recorded, the run says why: nothing is silent."""

import pytest

import rlprof
from tests.core.steps import record
from tests.core.test_engines import _given  # noqa: F401 -- a fixture

CALL = "call prof.steps(...) or prof.step(...)"


def problems(prof):
    return rlprof.read(prof.run_dir).problems


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"steps": [2, 200]}, range(1, 5)),
        ({"steps": {"every": 100, "first": 50}}, range(5)),
        ({"steps": "none"}, range(5)),
        ({"steps": [200], "roles": {"actor": {"ranks": [1]}}}, range(5)),
    ],
    ids=["one was reached", "a rule without end", "none asked", "another rank"],
)
def test_a_run_that_is_as_asked_says_nothing(config, changes, told):
    """What was not asked of this process, or may come in a longer run, is no problem."""
    prof = record(config(**changes), told, role="actor", rank=0, world_size=2)

    assert problems(prof) == ()


# failures.md: no-step
def test_phases_outside_of_any_step_are_told(config, caplog):
    """Without steps there is nothing to record them in; it is said once, at the end."""
    with rlprof.open(config()) as prof:
        for _ in range(3):
            with prof.phase("rollout"):
                pass

    reason = f"phases were entered outside any step; {CALL}"
    assert problems(prof) == (f"actor 0/1: {reason}",)
    assert caplog.text.count(reason) == 1


# failures.md: bad-step
def test_a_step_that_is_no_number_is_a_problem(config):
    """The first is told as a problem and stands for those that follow; nothing else is said."""
    prof = record(config(), ["1", "2"])

    reason = "step: expected a whole number, got '1'; this step is not recorded"
    assert problems(prof) == (f"actor 0/1: {reason}",)


# failures.md: engine-missing
@pytest.mark.slow
def test_an_engine_that_nobody_attached_is_missing(given, shell):
    """A role with an engine is recorded through prof.attach; if nobody calls it, that is said."""
    prof = record(given(), range(3), "update", role="actor")

    missing = rlprof.read(prof.run_dir).missing
    assert [(target.role, target.replica) for target in missing] == [("rollout", 0)]
    assert "missing:\n  rollout: no engine was attached" in shell("ls", prof.run_dir)[1]
