"""What goes wrong with the real nsys: training is what it is alone, the manifest says what was."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

import rlprof
from rlprof_nsys._arguments import LAUNCHER, Asked
from tests.nsys_real.between import install
from tests.nsys_real.test_windows import (
    _alone,  # noqa: F401 -- a fixture
    captures,
    is_clean,
    processes_below,
    ranges,
    reports,
    result,
    train,
)

pytestmark = pytest.mark.slow
SELF_TEST = 1
"""Calls of start and stop before those of the first window."""


def states(home):
    return [capture.state for capture in captures(home)]


def notes(capture):
    return "; ".join(capture.notes)


# failures.md: nsys-hangs
def test_a_stop_that_hangs_costs_that_window(nsys, tmp_path, alone):
    """The window before and the window after are whole, and the manifest says what was."""
    home = tmp_path / "home"
    hangs = install(tmp_path / "bin", nsys, stop=[SELF_TEST + 2])

    process = train(hangs, home, steps=3, options={"stop_s": 15})

    assert process.returncode == 0
    assert result(home)["weights"] == alone(3)
    first, second, third = states(home)
    assert (first, third) == ("whole", "whole"), [notes(one) for one in captures(home)]
    assert second in {"failed", "partial"}  # a stop that hung is made up for by the next start
    assert "nsys stop did not return within 15 s and was killed" in notes(captures(home)[1])
    assert (len(ranges(nsys, reports(home)[0])), len(ranges(nsys, reports(home)[-1]))) == (2, 4)
    assert is_clean(home)


# failures.md: nsys-session
def test_a_killed_keeper_costs_windows_and_nothing_else(nsys, tmp_path, alone):
    """SIGKILL in a window: training goes on, nsys ends by itself, and later windows say why."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=3, breaks_in=2, by="keeper")

    assert process.returncode == 0
    assert result(home)["weights"] == alone(3)
    assert result(home)["child"] == "alive\n"
    assert (states(home)[0], states(home)[2]) == ("whole", "failed")
    end = time.monotonic() + 60
    while processes_below(home) and time.monotonic() < end:
        time.sleep(0.1)
    assert processes_below(home) == []


# failures.md: nsys-quiet
def test_libraries_are_looked_for_where_they_are_alone(nsys, tmp_path):
    """Nsight Systems appends to LD_LIBRARY_PATH, and so names the folder it is started in."""
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    tell = [sys.executable, "-c", "import os; print(os.environ.get('LD_LIBRARY_PATH'))"]

    said = [
        subprocess.run(
            [*LAUNCHER, Asked("tell", str(nsys), ("nvtx",)).text(), *tell],
            env={**env, **more}, cwd=tmp_path, text=True, check=True, timeout=120,
            stdout=subprocess.PIPE,
        ).stdout
        for more in ({}, {"LD_LIBRARY_PATH": "/mine"})
    ]  # fmt: skip

    assert said == ["None\n", "/mine\n"]


# failures.md: nsys-unusable, folder-removed, nsys-session
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"nsys": "/no/nsys", "steps": 1},
         (["failed"], "the program runs unprofiled: there is no program '/no/nsys'")),
        ({"steps": 1, "options": {"options": {"cudabacktrace": "x"}}},
         (["failed"], "Illegal --cudabacktrace argument: x.")),
        ({"steps": 3, "breaks_in": 2, "by": "folder"},
         (["whole", "failed", "whole"], "No such file or directory")),
        ({"steps": 2, "breaks_first": True, "by": "shutdown"},
         (["failed"] * 2, "nsys has no session")),
    ],
    ids=["missing", "refuses a value", "folder removed", "shut down"],
)  # fmt: skip
def test_a_window_that_cannot_be_recorded_says_why(nsys, tmp_path, alone, asked, found):
    """Training is what it is alone, the other windows are whole, and nothing is left of nsys."""
    home = tmp_path / "home"

    process = train(home=home, **{"nsys": nsys, **asked})

    assert process.returncode == 0
    assert result(home)["weights"] == alone(asked["steps"])
    assert result(home)["child"] == "alive\n"
    assert states(home) == found[0]
    assert all(found[1] in notes(one) for one in captures(home) if one.state == "failed")
    assert is_clean(home)


# failures.md: nsys-quiet
def test_a_report_has_no_process_but_the_programs(nsys, tmp_path):
    """Neither rlprof's exports are in it nor what the launcher has started."""
    home = tmp_path / "home"

    train(nsys, home, steps=1, options={"trace": ["nvtx", "osrt"]})

    found = []
    for report in reports(home):
        assert ranges(nsys, report)
        with closing(sqlite3.connect(report.with_suffix(".test.sqlite"))) as tables:
            pids = "SELECT DISTINCT (globalTid >> 24) & 0xffffff FROM OSRT_API"
            found += [tables.execute(pids).fetchall()]
    (run,) = (home / "runs").iterdir()
    (process,) = rlprof.read(run).processes
    assert found == [[(process.here.pid,)]]
