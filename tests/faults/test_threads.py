"""Phases that are entered on one thread and left on another, or never."""

from __future__ import annotations

import pytest

ON_A_THREAD = {"tools": {"torch": {"all_threads": False}}}
"""torch is a tool of the thread then, as it is beside a GPU; stopped on another it is no trace."""

IN_STEP_2 = """
def run(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()

with open_session() as prof:
    model = train(prof, steps=(1,))
    prof.step(2)
    phase = prof.phase("update")
    {calls}
    train(prof, steps=(3, 4, 5), model=model)
sys.exit(3)
"""
LEFT_THERE = IN_STEP_2.format(
    calls="phase.__enter__(); run(lambda: phase.__exit__(None, None, None))"
)


# failures.md: all-whole
def test_a_phase_that_another_thread_leaves(lab):
    """A tool that may be stopped anywhere is stopped there; the next window is recorded."""
    told = lab.both(LEFT_THERE, tool="torch")

    told.assert_all_whole("torch")


LATE = "closed late: it ended on another thread than it began on"
LOST = "stop: CaptureError: was stopped on another thread"
PLACES = {
    "left there": (LEFT_THERE, ["whole", "whole", "whole"], LATE),
    "left here": (
        IN_STEP_2.format(calls="run(phase.__enter__); phase.__exit__(None, None, None)"),
        ["whole", "failed", "whole"],
        LOST,
    ),
    "never left": (IN_STEP_2.format(calls="run(phase.__enter__)"), ["whole", "failed"], LOST),
}
"""What happens to a phase that a thread has entered → what becomes of the windows, and the note."""


# failures.md: closed-late
@pytest.mark.parametrize("name", PLACES)
def test_a_tool_of_a_thread_is_stopped_where_that_comes_by(lab, name):
    """Its window is closed late, or lost where its thread has ended or never comes, with a note."""
    script, states, why = PLACES[name]

    told = lab.both(script, tool="torch", **ON_A_THREAD)

    assert told.real.code == 3
    assert told.captures == [f"{step}/update torch {state}" for step, state in enumerate(states, 1)]
    assert told.processes == ["actor 0/1 ended"]
    assert told.notes[0].startswith(f"2/update torch: {why}")
    assert (len(told.notes), told.problems, told.log) == (1, [], []) or why is LOST
