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


def test_an_nsys_that_does_not_start_is_tried_again(nsys, tmp_path, alone):
    """The program runs once, and its windows are whole."""
    home = tmp_path / "home"

    process = train(install(tmp_path / "bin", nsys, launch={"fail": [1, 2, 3]}), home, steps=3)

    assert process.returncode == 0
    assert result(home)["weights"] == alone(3)
    assert states(home) == ["whole"] * 3
    assert is_clean(home)


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({"start": {"fail": [SELF_TEST + 2]}}, "nsys start: Agent lost"),
        (
            {"stop": {"hang": [SELF_TEST + 2]}},
            "nsys stop did not return within 20 s, and was ended",
        ),
        ({"stop": {"empty": [SELF_TEST + 2]}}, "the report is empty: nsys has not written it"),
    ],
    ids=["start fails", "stop hangs", "report of zero bytes"],
)
def test_a_window_that_goes_wrong_costs_that_window(nsys, tmp_path, alone, faults, said):
    """The one before and the one after are whole, and it says what was."""
    home = tmp_path / "home"
    options = {"start_s": 20, "stop_s": 20}

    process = train(
        install(tmp_path / "bin", nsys, **faults), home, steps=3, options=options,
        limits={"start_timeout_s": 60},
    )  # fmt: skip

    assert process.returncode == 0
    assert result(home)["weights"] == alone(3)
    first, second, third = states(home)
    assert (first, third) == ("whole", "whole")
    assert second in {"failed", "partial"}  # a stop that hung is made up for by the next start
    assert said in notes(captures(home)[1])
    assert (len(ranges(nsys, reports(home)[0])), len(ranges(nsys, reports(home)[-1]))) == (2, 4)
    assert is_clean(home)


def test_a_window_whose_folder_is_removed_costs_that_window(nsys, tmp_path, alone):
    """It writes elsewhere then, or not at all: it is told, and the next window is whole."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=3, breaks_in=2, by="folder")

    assert process.returncode == 0
    assert result(home)["weights"] == alone(3)
    assert states(home) == ["whole", "failed", "whole"]
    assert "No such file or directory" in notes(captures(home)[1])
    assert is_clean(home)


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


def test_what_a_killed_keeper_leaves_goes_with_the_next_one(nsys, tmp_path, alone):
    """SIGKILL, in a window: training goes on without nsys; the next launcher takes its folder."""
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
    assert len(list((home / "tmp").glob("rlprof-nsys-*"))) == 1
    subprocess.run(
        [*LAUNCHER, f"--nsys={nsys}", "--", "true"],
        env={**os.environ, "TMPDIR": f"{home}/tmp"}, check=True, timeout=120,
    )  # fmt: skip
    assert is_clean(home)


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


def test_an_option_that_is_refused_is_left_out_and_named(nsys, tmp_path):
    """What nsys does not take of a known option costs that option, and no window."""
    home = tmp_path / "home"

    train(nsys, home, steps=1, options={"trace": ["nvtx"], "options": {"cudabacktrace": "x"}})

    (capture,) = captures(home)
    assert capture.state == "whole"
    assert dict(capture.unsupported) == {
        "cudabacktrace": "nsys refuses it: Illegal --cudabacktrace argument: x."
    }


def test_a_report_has_no_process_but_the_programs(nsys, tmp_path):
    """Neither rlprof's exports are in it nor what the launcher has started."""
    home = tmp_path / "home"

    train(nsys, home, steps=3, options={"trace": ["nvtx", "osrt"]})

    found = []
    for report in reports(home):
        assert ranges(nsys, report)
        with closing(sqlite3.connect(report.with_suffix(".test.sqlite"))) as tables:
            pids = "SELECT DISTINCT (globalTid >> 24) & 0xffffff FROM OSRT_API"
            found += [tables.execute(pids).fetchall()]
    (run,) = (home / "runs").iterdir()
    (process,) = rlprof.read(run).processes
    assert found == [[(process.here.pid,)]] * 3
