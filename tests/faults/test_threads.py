"""Phases that are entered on one thread and left on another, or never."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

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


# failures.md: closed-late
def test_a_tool_of_a_thread_is_stopped_when_that_comes_by(lab):
    """The window goes on until its own thread takes the next step; that it was late is said."""
    told = lab.both(LEFT_THERE, tool="torch", **ON_A_THREAD)

    late = "closed late: it ended on another thread than it began on"
    assert told.captures == [f"{step}/update torch whole" for step in (1, 2, 3)]
    assert told.processes == ["actor 0/1 ended"]
    (note,) = told.notes
    assert note.startswith(f"2/update torch: {late}")
    assert told.problems == told.log == []


ABANDONED = {
    "left here": (
        "run(phase.__enter__); phase.__exit__(None, None, None)",
        ["whole", "failed", "whole"],
    ),
    "never left": ("run(phase.__enter__)", ["whole", "failed"]),
}
"""What happens to a phase that a thread has entered → what becomes of the windows."""


# failures.md: closed-late
@pytest.mark.parametrize("name", ABANDONED)
def test_a_window_whose_thread_has_ended_or_never_comes_by(lab, name):
    """Its recording is lost, and that is said; the process lives, and ends as it would have."""
    calls, states = ABANDONED[name]

    told = lab.both(IN_STEP_2.format(calls=calls), tool="torch", **ON_A_THREAD)

    assert told.real.code == 3
    assert told.captures == [f"{step}/update torch {state}" for step, state in enumerate(states, 1)]
    assert told.processes == ["actor 0/1 ended"]
    assert "2/update torch: stop: CaptureError: was stopped on another thread" in told.notes[0]
