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
from rlprof_nsys._arguments import LAUNCHER
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


# failures.md: nsys-unusable
def test_without_nsys_every_window_says_so(tmp_path, alone):
    """There is no such program: training runs unprofiled, and each window says why."""
    home = tmp_path / "home"
    missing = str(tmp_path / "no-nsys")

    process = train(missing, home, steps=2)

    assert process.returncode == 0
    assert result(home)["weights"] == alone(2)
    assert states(home) == ["failed"] * 2
    why = f"the program runs unprofiled: there is no program {missing!r}; install Nsight Systems"
    assert all(why in notes(capture) for capture in captures(home))
    assert is_clean(home)


# failures.md: nsys-hangs
def test_a_stop_that_hangs_costs_that_window(nsys, tmp_path, alone):
    """The window before and the window after are whole, and the manifest says what was."""
    home = tmp_path / "home"
    hangs = install(tmp_path / "bin", nsys, stop={"hang": [SELF_TEST + 2]})

    process = train(hangs, home, steps=3, options={"stop_s": 15})

    assert process.returncode == 0
    assert result(home)["weights"] == alone(3)
    first, second, third = states(home)
    assert (first, third) == ("whole", "whole"), [notes(one) for one in captures(home)]
    assert second in {"failed", "partial"}  # a stop that hung is made up for by the next start
    assert "nsys stop did not return within 15 s and was killed" in notes(captures(home)[1])
    assert (len(ranges(nsys, reports(home)[0])), len(ranges(nsys, reports(home)[-1]))) == (2, 4)
    assert is_clean(home)


# failures.md: folder-removed
def test_a_window_whose_folder_is_removed_costs_that_window(nsys, tmp_path, alone):
    """It writes elsewhere then, or not at all: it is told, and the next window is whole."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=3, breaks_in=2, by="folder")

    assert process.returncode == 0
    assert result(home)["weights"] == alone(3)
    assert states(home) == ["whole", "failed", "whole"]
    assert "No such file or directory" in notes(captures(home)[1])
    assert is_clean(home)


# failures.md: nsys-session
def test_an_nsys_that_is_gone_before_the_first_window_costs_all(nsys, tmp_path, alone):
    """Training is what it is alone, and every window says that there is no session."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=2, breaks_first=True, by="shutdown")

    assert process.returncode == 0
    assert result(home)["weights"] == alone(2)
    assert result(home)["child"] == "alive\n"
    assert states(home) == ["failed"] * 2
    assert all("nsys has no session" in notes(capture) for capture in captures(home))
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
            [*LAUNCHER, f"--nsys={nsys}", "--trace=nvtx", "--", *tell],
            env={**env, **more}, cwd=tmp_path, text=True, check=True, timeout=120,
            stdout=subprocess.PIPE,
        ).stdout
        for more in ({}, {"LD_LIBRARY_PATH": "/mine"})
    ]  # fmt: skip

    assert said == ["None\n", "/mine\n"]


# failures.md: nsys-unusable
def test_a_value_that_nsys_refuses_is_named(nsys, tmp_path, alone):
    """The program runs unprofiled, and every window has the sentence of nsys."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=1, options={"options": {"cudabacktrace": "x"}})

    assert process.returncode == 0
    assert result(home)["weights"] == alone(1)
    assert states(home) == ["failed"]
    assert "Illegal --cudabacktrace argument: x." in notes(captures(home)[0])
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
