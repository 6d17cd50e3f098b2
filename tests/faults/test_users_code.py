"""The user's code, with no fault at all, and raising: what it does is the same with rlprof."""

from __future__ import annotations

import pytest

from tests.faults.told import Told

pytestmark = pytest.mark.slow


# failures.md: all-whole
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


# failures.md: closed-descriptors
def test_every_descriptor_is_closed_under_rlprof(lab):
    """Training's own files get the numbers: nothing strange is written into them, none is closed.

    The manifest and the spans are gone on with.
    """
    script = """
def tidy_up(step):
    if step == 1:
        settle(prof, 1)
        rest(prof)  # what a thread opens for a moment could be closed by it once it is training's
        os.closerange(3, 256)
        mine.extend(open(f"{os.environ['FAULTS_HOME']}/mine_{n}", "w+") for n in range(32))

mine = []
with open_session() as prof:
    train(prof, between=tidy_up)
for file in mine:
    file.write("mine")
    file.flush()
    file.seek(0)
    assert file.read() == "mine", file.name
print("state of my files: fine")
"""
    told = lab.both(script, model="floats")

    assert told.real.states[-1] == "state of my files: fine"
    assert told.captures == [f"{step}/update faulty whole" for step in (1, 2, 3)]
    assert told.processes == ["actor 0/1 ended"]
    assert len([span for span in told.run.spans() if span.kind == "step"]) == 5
    assert told.notes == told.problems == told.log == []


# failures.md: code-raised
@pytest.mark.parametrize(("place", "tool"), [("within", "torch"), ("between", "faulty")])
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
