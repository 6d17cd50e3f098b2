"""The wall clock steps back by an hour in mid-run: nothing recorded changes its order."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

STEPPING = """
behind_s = 0
time_ns, seconds = time.time_ns, time.time
time.time_ns = lambda: time_ns() - behind_s * 10**9
time.time = lambda: seconds() - behind_s

def step_back(step):
    global behind_s
    if step == 2:
        behind_s = 3600

with open_session() as prof:
    train(prof, {place}=step_back)
"""


# failures.md: all-whole
@pytest.mark.parametrize(("place", "tool"), [("within", "torch"), ("between", "faulty")])
def test_a_clock_that_steps_back_spoils_no_capture(lab, place, tool):
    """In a window or between two: every window is whole, in order, and nothing is said."""
    told = lab.both(STEPPING.format(place=place), tool=tool)

    opened = [capture.opened_ns for capture in told.run.captures]
    assert told.captures == [f"{step}/update {tool} whole" for step in (1, 2, 3)]
    assert opened == sorted(opened)
    assert told.processes == ["actor 0/1 ended"]
    assert told.notes == told.problems == told.log == []


# failures.md: all-whole
def test_a_clock_that_steps_back_leaves_spans_in_order(lab):
    """Each step follows the one before, and each phase lies inside its step."""
    told = lab.both(STEPPING.format(place="within"))

    spans = list(told.run.spans())
    steps = [span.start_ns for span in spans if span.kind == "step"]
    around = {span.id: span for span in spans}
    assert steps == sorted(steps)
    for span in spans:
        above = around.get(span.parent, span)
        assert above.start_ns <= span.start_ns <= span.end_ns <= above.end_ns
