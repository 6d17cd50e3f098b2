"""Calls in the wrong order or twice, and runs that meet in one folder."""

from __future__ import annotations

import pytest

from tests.faults.told import Told, captures

pytestmark = pytest.mark.slow

WHOLE = [f"{step}/update torch whole" for step in (1, 2, 3)]
NAMED = {"RLPROF_RUN_ID": "experiment"}

ODD = {
    "a phase left twice": """
with open_session() as prof:
    train(prof)
    prof.step(6)
    phase = prof.phase("update")
    phase.__enter__()
    phase.__exit__(None, None, None)
    phase.__exit__(None, None, None)
""",
    "a phase left that was never entered": """
with open_session() as prof:
    train(prof)
    prof.step(6)
    prof.phase("update").__exit__(None, None, None)
""",
    "calls before the first step": """
with open_session() as prof:
    prof.minibatch()
    with prof.phase("update"):
        prof.minibatch()
    train(prof)
""",
    "a session closed twice": """
with open_session() as prof:
    train(prof)
    prof.close()
prof.close()
""",
    "steps after close": """
prof = open_session()
model = train(prof)
prof.close()
train(prof, steps=(6, 7), model=model)
with prof.phase("update"):
    prof.minibatch()
""",
    "a session left that was never entered": """
prof = open_session()
train(prof)
prof.__exit__(None, None, None)
""",
}
"""What is done → a script that trains whole and then does it."""


# failures.md: all-whole
@pytest.mark.parametrize("name", ODD)
def test_odd_calls_change_nothing(lab, name):
    """What was recorded stays as it is, nothing is recorded twice, and nothing is said."""
    told = lab.both(ODD[name], tool="torch")

    updates = [span.step for span in told.run.spans() if span.name == "update"]
    steps = [step for step in updates if step is not None]
    ids = [span.id for span in told.run.spans()]
    assert told.captures == WHOLE
    assert told.processes == ["actor 0/1 ended"]
    assert steps == sorted(set(steps))
    assert len(ids) == len(set(ids))
    assert told.notes == told.problems == told.log == []


# failures.md: phase-outlives
def test_a_phase_that_outlives_its_step(lab):
    """Its window goes on until it ends; the step in which it was open is skipped, and that said."""
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
    assert told.captures == ["1/update torch whole", "2/update torch whole"]
    assert told.processes == ["actor 0/1 ended"]
    assert told.notes == []
    assert told.problems == [f"step 3 was skipped: {reason}"]
    assert told.log == [f"skipped: step 3: {reason}"]


# failures.md: phase-outlives
def test_a_phase_that_outlives_its_session(lab):
    """Closed in mid-window: what was recorded until then is exported, and said to be cut."""
    script = """
with open_session() as prof:
    train(prof, within=lambda step: step == 2 and prof.close())
"""
    told = lab.both(script, tool="faulty")

    assert told.captures == [f"{step}/update faulty whole" for step in (1, 2)]
    assert told.notes == ["2/update faulty: closed early: the session was closed"]
    assert told.processes == ["actor 0/1 ended"]
    assert told.problems == told.log == []


# failures.md: second-session
def test_a_second_session_is_refused_and_the_first_goes_on(lab):
    """A process has one; who opens another is told so, and nothing is lost."""
    script = """
with open_session() as prof:
    model = train(prof, steps=(1, 2))
    try:
        open_session()
    except Exception as exc:
        print(exc, flush=True)
    train(prof, steps=(3, 4, 5), model=model)
"""
    told = lab.both(script, tool="torch")

    assert "a session is open in this process; close it first" in told.real.out
    assert told.captures == WHOLE
    assert told.notes == told.problems == told.log == []


# failures.md: attempts
def test_a_session_after_another_is_an_attempt_of_its_own(lab):
    """Closed and opened again under one id, the second writes beside the first."""
    script = """
for life in ("first ", "second "):
    with open_session() as prof:
        train(prof, who=life)
"""
    told = lab.both(script, tool="torch", env=NAMED)

    assert [(run.run_id, run.attempt) for run in told.runs] == [
        ("experiment", 1),
        ("experiment", 2),
    ]
    assert [captures(run) for run in told.runs] == [WHOLE, WHOLE]
    assert told.log == []


TRAIN = """
with open_session() as prof:
    train(prof)
"""


# failures.md: attempts
@pytest.mark.parametrize("env", [{}, NAMED])
def test_two_jobs_at_once_keep_apart(lab, env):
    """The same config, even the same run id: each has a folder that no other writes in."""
    bare = lab.bare(TRAIN, env=env)
    children = [lab.start(TRAIN, tool="torch", env=env) for _ in range(2)]

    told = [Told(lab, bare, lab.finish(child), child.pid) for child in children]

    for one in told:
        one.assert_harmless()
    runs = told[0].runs
    assert [captures(run) for run in runs] == [WHOLE, WHOLE]
    assert [len(run.processes) for run in runs] == [1, 1]
    assert {child.pid for child in children} == {run.processes[0].here.pid for run in runs}
    assert [] == told[0].log == told[1].log


# failures.md: attempts
@pytest.mark.parametrize("end", ["pass", "os._exit(7)"])
def test_a_resumed_run_is_a_second_attempt(lab, end):
    """However the first life ended, the second has its own folder and the first is unchanged."""
    script = f"""
prof = open_session()
train(prof, between=lambda step: settle(prof, 1))
{end}
"""
    first = lab.both(script, tool="torch", env=NAMED, steps=[1])
    before = {file: file.read_bytes() for file in first.run.path.rglob("*") if file.is_file()}

    told = lab.both(script, tool="torch", env=NAMED, steps=[1])

    assert [(run.attempt, captures(run)) for run in told.runs] == [(1, WHOLE[:1]), (2, WHOLE[:1])]
    assert before == {file: file.read_bytes() for file in before}
    assert told.log == []
