"""Faults of the real nsys: training stays the same, and the manifest names the fault."""

import os
import subprocess
import sys

import pytest

from rlprof_nsys._arguments import LAUNCHER, Asked
from tests.nsys_real.drive import captures, is_clean, result, states, train

pytestmark = pytest.mark.slow


def notes(capture):
    return "; ".join(capture.notes)


# failures.md: nsys-session
@pytest.mark.parametrize("who", ["agent", "keeper"])
def test_a_killed_process_of_nsys_costs_windows_and_nothing_else(nsys, tmp_path, alone, who):
    """If a process of nsys is killed in a window, training continues and later windows fail."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=3, breaks_in=2, by=who)

    assert process.returncode == 0
    assert result(home)["weights"] == alone(3)
    assert result(home)["child"] == "alive\n"
    first, second, third = captures(home)
    assert (first.state, third.state) == ("whole", "failed")
    assert "nsys has no session" in notes(third) or who == "keeper"
    assert second.state in ("partial", "failed", "empty") or who == "keeper"
    assert is_clean(home, folders=who == "agent")  # a dead keeper removes no folder


# failures.md: nsys-quiet
def test_the_library_path_is_the_one_without_nsys(nsys, tmp_path):
    """The program has the LD_LIBRARY_PATH that it has without nsys."""
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
        ({"steps": 1, "options": {"trace": ["nvtx", "syscall"]}}, (["failed"], "--trace")),
        ({"steps": 3, "breaks_in": 2, "by": "folder"},
         (["whole", "failed", "whole"], "No such file or directory")),
        ({"steps": 2, "breaks_first": True, "by": "shutdown"},
         (["failed"] * 2, "nsys has no session")),
    ],
    ids=["missing", "refuses a value", "cannot trace", "folder removed", "shut down"],
)  # fmt: skip
def test_a_window_that_cannot_be_recorded_says_why(nsys, tmp_path, alone, asked, found):
    """A window that nsys cannot record fails with its error; training is the same as alone."""
    home = tmp_path / "home"

    process = train(home=home, **{"nsys": nsys, **asked})

    assert process.returncode == 0
    assert result(home)["weights"] == alone(asked["steps"])
    assert result(home)["child"] == "alive\n"
    assert states(home) == found[0]
    assert all(found[1] in notes(one) for one in captures(home) if one.state == "failed")
    assert is_clean(home)
