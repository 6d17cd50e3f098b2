"""Every way a process may end: the code is the user's, the manifest says what was lost."""

from __future__ import annotations

import signal

import pytest

from tests.faults.harness import wait_for

pytestmark = pytest.mark.slow

IN_A_WINDOW = """
def end(step):
    if step == 2:
        {end}

{before}
prof = open_session()
train(prof, within=end, between=lambda step: settle(prof, 1))
"""

STOPPED = ["1/update {tool} whole", "2/update {tool} whole"]
CUT = ["1/update {tool} whole", "2/update {tool} lost"]

ENDS = {
    "exit 0": ("sys.exit(0)", "", 0, STOPPED),
    "exit 3": ("sys.exit(3)", "", 3, STOPPED),
    "exit text": ("sys.exit('the end')", "", 1, STOPPED),
    "interrupt": ("os.kill(os.getpid(), signal.SIGINT)", "", -signal.SIGINT, STOPPED),
    "terminate, handled": (
        "os.kill(os.getpid(), signal.SIGTERM)",
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))",
        4,
        STOPPED,
    ),
    "terminate": ("os.kill(os.getpid(), signal.SIGTERM)", "", -signal.SIGTERM, CUT),
    "terminate, handled by _exit": (
        "os.kill(os.getpid(), signal.SIGTERM)",
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(6))",
        6,
        CUT,
    ),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", "", -signal.SIGKILL, CUT),
    "_exit": ("os._exit(7)", "", 7, CUT),
    "abort": ("os.abort()", "", -signal.SIGABRT, CUT),
}
"""Name → what ends the process, what it does before, the exit code, the captures."""


# failures.md: ended-in-window, died
@pytest.mark.parametrize(("tool", "name"), [*(("torch", name) for name in ENDS),
                                            ("faulty", "exit 3"), ("faulty", "kill")])  # fmt: skip
def test_an_end_in_a_window(lab, name, tool):
    """Where Python still runs, the window is stopped and exported; elsewhere it reads as lost."""
    end, before, code, captures = ENDS[name]

    told = lab.both(IN_A_WINDOW.format(end=end, before=before), tool=tool)

    died = captures is CUT
    early = "" if died else "closed early: the session was closed"
    assert told.real.code == code
    assert told.captures == [row.format(tool=tool) for row in captures]
    assert told.processes == ["actor 0/1 " + ("died" if died else "ended")]
    assert [note for note in told.notes if early not in note] == []
    assert told.problems == told.log == []


# failures.md: died
def test_an_end_that_nobody_announced_between_windows_loses_nothing(lab):
    """Killed while no window is open and all are exported: every one of them is whole."""
    script = """
def between(step):
    settle(prof, step)
    if step == 2:
        os.kill(os.getpid(), signal.SIGKILL)

prof = open_session()
train(prof, between=between)
"""
    told = lab.both(script, tool="torch")

    assert told.real.code == -signal.SIGKILL
    assert told.captures == ["1/update torch whole", "2/update torch whole"]
    assert told.processes == ["actor 0/1 died"]
    assert told.notes == told.problems == told.log == []


# failures.md: ended-in-window
def test_a_process_that_never_closes_is_closed(lab):
    """At its end a window that is still open is stopped and exported."""
    script = """
prof = open_session()
train(prof)
prof.step(2)
prof.phase("update").__enter__()
"""
    told = lab.both(script, tool="torch")

    assert told.captures == [
        "1/update torch whole",
        "2/update torch whole",
        "2/update.1 torch whole",
        "3/update torch whole",
    ]
    assert told.processes == ["actor 0/1 ended"]
    assert told.problems == told.log == []


# failures.md: died
def test_a_kill_in_an_export_leaves_the_helper_to_end_itself(lab):
    """The capture reads as lost, windows before it are whole, and the helper does not stay."""
    script = """
def between(step):
    settle(prof, 1)
    if step == 2:
        print("waiting", flush=True)
        time.sleep(600)

prof = open_session()
train(prof, between=between)
"""

    def kill(child):
        wait_for(lambda: "waiting" in child.out.read_text(), "step 2")
        wait_for(lambda: child.bare or lab.reached(), "the export of step 2")
        child.kill()
        if not child.bare:
            lab.go_on()

    waits = {"faulty": {"hook": "export", "how": "wait"}}

    told = lab.both(script, tool="faulty", tools=waits, act=kill)

    assert told.captures == ["1/update faulty whole", "2/update faulty lost"]
    assert told.processes == ["actor 0/1 died"]
    assert told.notes == told.problems == told.log == []
