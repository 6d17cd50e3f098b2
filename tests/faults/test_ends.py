"""Every way a process may end: the code is the user's, the manifest says what was lost."""

from __future__ import annotations

import signal

import pytest

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

ENDS = {
    "exit": ("sys.exit(3)", "", 3, STOPPED),
    "interrupt": ("os.kill(os.getpid(), signal.SIGINT)", "", -signal.SIGINT, STOPPED),
    "terminate, handled": (
        "os.kill(os.getpid(), signal.SIGTERM)",
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))",
        4,
        STOPPED,
    ),
    "terminate": ("os.kill(os.getpid(), signal.SIGTERM)", "", -signal.SIGTERM, CUT),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", "", -signal.SIGKILL, CUT),
    "_exit": ("os._exit(7)", "", 7, CUT),
}
"""Name → what ends the process, what it does before, the exit code, the captures."""


# failures.md: ended-in-window, died
@pytest.mark.parametrize("name", ENDS)
def test_an_end_in_a_window(lab, name):
    """Where Python still runs, the window is stopped and exported; elsewhere it reads as lost."""
    end, before, code, captures = ENDS[name]

    told = lab.both(IN_A_WINDOW.format(end=end, before=before), tool="torch")

    died = captures is CUT
    early = "" if died else "closed early: the session was closed"
    assert told.real.code == code
    assert told.captures == captures
    assert told.processes == ["actor 0/1 " + ("died" if died else "ended")]
    assert [note for note in told.notes if early not in note] == []
    assert told.problems == told.log == []
