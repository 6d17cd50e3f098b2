"""Who a process is, and whether it still lives."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest

from rlprof.rundir import Here, is_alive

SAY = """
import attrs, json, sys
from rlprof.rundir import Here, _process
print(json.dumps([attrs.asdict(Here.now()), _process.born_ns()]), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_another_process_is_alive_until_it_is_killed():
    """A process of the same machine is seen to live and to die, also while nobody collects it."""
    called_ns = time.time_ns()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SAY], **pipes)
    said, born_ns = json.loads(process.stdout.readline())
    here = Here(**said)

    answered_ns, before = time.time_ns(), is_alive(here)
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    as_zombie = is_alive(here)
    process.communicate()
    after = is_alive(here)

    assert (before, as_zombie, after) == (True, False, False)
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    assert called_ns - 2 * tick_ns < born_ns < answered_ns


def test_what_cannot_be_seen_is_not_guessed(monkeypatch):
    """Another host, boot or container is unknown, whatever the pid; who refuses a signal lives."""

    def refuse(pid, number):
        raise PermissionError

    here = Here.now()
    monkeypatch.setattr(os, "kill", refuse)

    others = [attrs.evolve(here, **{one: "x"}) for one in ("host", "boot_id", "pid_namespace")]
    assert [is_alive(one) for one in (here, *others)] == [True, None, None, None]


def test_a_name_like_the_files_own_syntax_confuses_nobody():
    """A command named with brackets and spaces does not shift the fields of /proc/PID/stat."""
    before, comm = Here.now(), Path("/proc/self/comm")
    name = comm.read_text().rstrip("\n")
    comm.write_text("a) R (1 2) Z")

    try:
        named = Here.now()
    finally:
        comm.write_text(name)

    assert before == named
