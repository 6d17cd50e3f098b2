"""Calls out of order, twice or on other threads, and two runs at once."""

import pytest

from tests.faults.harness import TRAIN
from tests.faults.told import Told, captures, rows

WHOLE = [f"{step}/update torch whole" for step in (1, 2, 3)]
NAMED = {"RLPROF_RUN_ID": "experiment"}


# failures.md: all-whole, second-session
def test_repeated_and_misplaced_calls_change_nothing(lab):
    """Repeated and misplaced calls and a second session change nothing; each span is unique."""
    script = """
prof = open_session()
prof.minibatch()
with prof.phase("update"):
    prof.minibatch()
model = train(prof)
if prof.run_dir is not None:
    with contextlib.suppress(Exception):
        open_session()
        print("state two sessions")
prof.step(6)
phase = prof.phase("update")
phase.__enter__()
phase.__exit__(None, None, None)
phase.__exit__(None, None, None)
prof.step(7)
prof.phase("update").__exit__(None, None, None)
prof.close()
prof.__exit__(None, None, None)
train(prof, steps=(8, 9), model=model)
with prof.phase("update"):
    prof.minibatch()
"""
    told = lab.both(script, tool="torch")

    steps = [span.step for span in told.run.spans() if span.name == "update"]
    steps = [step for step in steps if step is not None]
    ids = [span.id for span in told.run.spans()]
    told.assert_all_whole("torch")
    assert steps == sorted(set(steps))
    assert len(ids) == len(set(ids))


# failures.md: phase-outlives
def test_a_phase_that_outlives_its_step(lab):
    """A phase that outlives its step keeps its window open, and the next step is skipped."""
    script = """
with open_session() as prof:
    model = train(prof, steps=(1,))
    prof.step(2)
    long = prof.phase("update")
    long.__enter__()
    train(prof, steps=(3,), model=model)
    long.__exit__(None, None, None)
    train(prof, steps=(4, 5), model=model)
"""
    told = lab.both(script, tool="torch")

    reason = "the window 2/update was still open"
    said = {"problems": [f"step 3 was skipped: {reason}"], "log": [f"skipped: step 3: {reason}"]}
    told.assert_tells(WHOLE[:2], notes=[], **said)


# failures.md: attempts
def test_two_jobs_with_one_run_id_have_their_own_folders(lab):
    """Two jobs at once with one config and run id write into folders of their own."""
    bare = lab.bare(TRAIN, env=NAMED)
    children = [lab.start(TRAIN, tool="torch", env=NAMED) for _ in range(2)]

    told = [Told(lab, bare, lab.finish(child), child.pid) for child in children]

    for one in told:
        one.assert_harmless()
    runs = told[0].runs
    assert [captures(run) for run in runs] == [WHOLE, WHOLE]
    assert [len(run.processes) for run in runs] == [1, 1]
    assert {child.pid for child in children} == {run.processes[0].here.pid for run in runs}
    assert [] == told[0].log == told[1].log


ON_A_THREAD, ON_ALL = ({"tools": {"torch": {"all_threads": each}}} for each in (False, True))
"""Binds torch to its thread, as with a GPU; a stop on another thread loses the trace."""

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
ALL = ["whole"] * 3
THERE = "phase.__enter__(); run(lambda: phase.__exit__(None, None, None))"
HERE = "run(phase.__enter__); phase.__exit__(None, None, None)"
LATE = "closed late: it ended on another thread than it began on"
LOST = "stop: CaptureError: was stopped on another thread"
PLACES = {
    "left there": (THERE, ALL, LATE),
    "left there by a tool of the process": (THERE, ALL, ""),
    "left here": (HERE, ["whole", "failed", "whole"], LOST),
    "never left": ("run(phase.__enter__)", ["whole", "failed"], LOST),
}
"""End of a phase that a thread entered → its calls, states of the windows, and the note."""


# failures.md: closed-late, all-whole
@pytest.mark.parametrize("name", PLACES)
def test_a_thread_bound_tool_is_stopped_on_its_own_thread(lab, name):
    """A tool bound to a thread is stopped there, late if need be; otherwise its window fails."""
    calls, states, why = PLACES[name]

    told = lab.both(IN_STEP_2.format(calls=calls), tool="torch", **(ON_A_THREAD if why else ON_ALL))

    assert told.real.code == 3
    told.assert_tells(rows(["torch"], "torch", states))
    assert not why or told.notes[0].startswith(f"2/update torch: {why}")
    assert (len(told.notes), told.problems, told.log) == (bool(why), [], []) or why is LOST
