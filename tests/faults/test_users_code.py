"""User code that closes files, sets clocks, raises or exits behaves the same with rlprof."""

import signal

import pytest


# failures.md: closed-descriptors
def test_training_that_closes_every_descriptor_loses_nothing(lab):
    """Training that closes every descriptor keeps its own files whole, and rlprof all windows."""
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
    told.assert_all_whole("faulty")
    assert len([span for span in told.run.spans() if span.kind == "step"]) == 5


# failures.md: all-whole
def test_a_clock_that_jumps_back_costs_no_window(lab):
    """A clock that jumps back in a window costs no window and keeps captures and spans in order."""
    script = """
behind_s = 0
time_ns, seconds = time.time_ns, time.time
time.time_ns = lambda: time_ns() - behind_s * 10**9
time.time = lambda: seconds() - behind_s

def step_back(step):
    global behind_s
    if step == 2:
        behind_s = 3600

with open_session() as prof:
    train(prof, within=step_back)
"""
    told = lab.both(script, tool="torch")

    opened = [capture.opened_ns for capture in told.run.captures]
    spans = list(told.run.spans())
    steps = [span.start_ns for span in spans if span.kind == "step"]
    around = {span.id: span for span in spans}
    told.assert_all_whole("torch")
    assert (opened, steps) == (sorted(opened), sorted(steps))
    for span in spans:
        above = around.get(span.parent, span)
        assert above.start_ns <= span.start_ns <= span.end_ns <= above.end_ns


IN_A_WINDOW = """
def end(step):
    if step == 2:
        {end}

{before}
prof = open_session()
train(prof, within=end, between=lambda step: settle(prof, 1))
"""

STOPPED = ["1/update torch whole", "2/update torch whole"]
CUT = ["1/update torch whole", "2/update torch lost"]

TERMINATE = "os.kill(os.getpid(), signal.SIGTERM)"
HANDLED = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))"
ENDS = {
    "exit": ("sys.exit(3)", "", 3, STOPPED),
    "raise": ("raise ZeroDivisionError('mine')", "", 1, STOPPED),
    "interrupt": ("os.kill(os.getpid(), signal.SIGINT)", "", -signal.SIGINT, STOPPED),
    "terminate, handled": (TERMINATE, HANDLED, 4, STOPPED),
    "terminate": (TERMINATE, "", -signal.SIGTERM, CUT),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", "", -signal.SIGKILL, CUT),
    "_exit": ("os._exit(7)", "", 7, CUT),
}
"""Name → the statement that ends the process, its preparation, exit code and captures."""


# failures.md: ended-in-window, died, code-raised
@pytest.mark.parametrize("name", ENDS)
def test_a_process_that_ends_in_a_window(lab, name):
    """A window is exported if Python still runs as the process ends, and lost otherwise."""
    end, before, code, captures = ENDS[name]

    told = lab.both(IN_A_WINDOW.format(end=end, before=before), tool="torch")

    died = captures is CUT
    early = "" if died else "closed early: the session was closed"
    assert told.real.code == code
    process = "actor 0/1 died" if died else "actor 0/1 ended"
    told.assert_tells(captures, process, problems=[], log=[])
    assert [note for note in told.notes if early not in note] == []
    assert ("ZeroDivisionError: mine" in told.real.err.splitlines()) is (name == "raise")
