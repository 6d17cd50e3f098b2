"""The user's code, with no fault at all, and raising: what it does is the same with rlprof."""

from __future__ import annotations

import pytest

from tests.faults.told import Told

pytestmark = pytest.mark.slow


def test_nothing_at_all_goes_wrong(lab):
    """A fresh process trains what the forked ones of these tests do; every window is whole."""
    script = """
with open_session() as prof:
    train(prof)
"""
    child = lab.start(script, tool="torch", afresh=True)

    told = Told(lab, lab.bare(script), lab.finish(child), child.pid)

    told.assert_harmless()
    assert len(told.real.states) == 5
    assert told.captures == [f"{step}/update torch whole" for step in (1, 2, 3)]
    assert told.processes == ["actor 0/1 ended"]
    assert told.notes == told.problems == told.log == []


@pytest.mark.parametrize("tool", ["torch", "faulty"])
@pytest.mark.parametrize("place", ["within", "between"])
def test_an_exception_passes_and_what_was_recorded_is_whole(lab, place, tool):
    """Raised in a window or between two, it ends the job as it would have; each window is whole."""
    script = f"""
def fail(step):
    if step == 3:
        raise ZeroDivisionError("mine")

with open_session() as prof:
    train(prof, {place}=fail)
"""
    told = lab.both(script, tool=tool)

    assert told.real.err.splitlines()[-1] == "ZeroDivisionError: mine"
    assert told.captures == [f"{step}/update {tool} whole" for step in (1, 2, 3)]
    assert told.processes == ["actor 0/1 ended"]
    assert told.notes == told.problems == told.log == []
