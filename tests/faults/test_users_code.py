"""The user's code raises or exits: the exception and the code are the user's, the data are kept."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


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
