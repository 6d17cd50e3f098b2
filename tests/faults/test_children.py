"""Child processes of training have their own session or none, and harm no other."""

import pytest

from tests.faults.told import NOTHING, rows

WHOLE = rows(["faulty"], "faulty", ["whole"] * 3)
ROLES = {"roles": {"actor": {"phases": ["update"]}, "critic": {"phases": ["update"]}}}


# failures.md: children
def test_a_forked_child_trains_on_without_touching_the_run(lab):
    """A forked child trains and exits as it likes; the windows of its parent are whole."""
    script = """
def fork(step):
    if step == 2:
        child = os.fork()
        if child == 0:
            train(prof, who="child ")
            sys.exit(3)
        print("state child code", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

with open_session() as prof:
    train(prof, within=fork)
"""
    told = lab.both(script, tool="torch")

    assert "state child code 3" in told.real.states
    told.assert_all_whole("torch")
    assert len([span for span in told.run.spans() if span.kind == "step"]) == 5


# failures.md: all-whole
def test_training_that_waits_for_any_child(lab):
    """Training that reaps an export's helper with waitpid(-1) loses no window."""
    script = """
def reap(step):
    while step == 1 and prof.run_dir is not None:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            if ended:  # rlprof was quicker, and took it away
                break
            time.sleep(0.02)  # it is started soon
        else:
            break

ended = []
signal.signal(signal.SIGCHLD, lambda *_: ended.append(1))
with open_session() as prof:
    train(prof, between=reap)
assert ended or prof.run_dir is None
"""
    told = lab.both(script, model="floats")

    told.assert_all_whole("faulty")


# failures.md: children
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_with_a_session_of_its_own_joins_the_run(lab, method):
    """A child with its own session and role joins the run; all windows of both are whole."""
    script = f"""
import multiprocessing

def work():
    with open_session(role="critic") as prof:
        train(prof, who="child ")
    sys.exit(3)

if __name__ == "__main__":
    with open_session(role="actor") as prof:
        model = train(prof, steps=(1, 2))
        child = multiprocessing.get_context("{method}").Process(target=work)
        child.start()
        child.join()
        print("state child code", child.exitcode, flush=True)
        train(prof, steps=(3, 4, 5), model=model)
"""
    told = lab.both(script, model="floats", env={"RLPROF_RUN_ID": "family"}, **ROLES)

    assert "state child code 3" in told.real.states
    assert sorted(told.captures) == sorted(2 * WHOLE)
    told.assert_tells(told.captures, "actor 0/1 ended", "critic 0/1 ended", **NOTHING)


# failures.md: children
def test_a_child_closes_its_session_at_its_end(lab):
    """A child of multiprocessing closes its session at its end, although it skips atexit."""
    script = """
import multiprocessing

def work():
    prof = open_session(role="critic")
    train(prof, who="child ")

if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    print("state child code", child.exitcode, flush=True)
"""
    told = lab.both(script, model="floats", **ROLES)

    problems = {"problems": ["actor 0/1 is missing"]}
    told.assert_tells(WHOLE, "critic 0/1 ended", **NOTHING | problems)
