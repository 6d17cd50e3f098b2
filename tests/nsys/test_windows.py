"""Windows on a stand-in for nsys: what it is told, and what is said where it goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import attrs
import pytest

from rlprof import CaptureError, Target, Window
from rlprof_nsys import _nsys
from rlprof_nsys._mark import MARK, Mark, read_mark
from rlprof_nsys._watch import leave_children_alone
from tests.fakes.nsys import VERSION
from tests.nsys.conftest import SESSION, configured, options

pytestmark = pytest.mark.slow

WINDOW, TARGET = Window(3, 4, "update_actor"), Target("actor")


def notes(folder):
    return json.loads((folder / "nsys.json").read_bytes())


def record(hooks, folder):
    """Record one window with three ranges in it."""
    ranges = hooks.start(window=WINDOW, target=TARGET, folder=folder)
    for step in range(3):
        ranges.push("update", {"step": step, "occurrence": 0})
        ranges.pop()
    hooks.stop(window=None, folder=folder)
    return ranges


def test_a_window_is_a_start_and_a_stop_of_the_session(inside, folder):
    """It is told the session, the file, and to sample nothing; the report is there after it."""
    hooks = configured(self_test=False)

    ranges = record(hooks, folder)

    assert inside.calls == [
        ["start", f"--session={SESSION}", "--sample=none", "--cpuctxsw=none",
         "--force-overwrite=true", f"--output={folder}/report"],
        ["stop", f"--session={SESSION}"],
    ]  # fmt: skip
    said = notes(folder)
    assert {key: said[key] for key in ("whole", "why", "spans", "pid", "domain", "mode")} == {
        "whole": True, "why": "", "spans": 3, "pid": os.getpid(), "domain": "rlprof",
        "mode": "session",
    }  # fmt: skip
    assert (said["nsys"], said["version"], said["session"]) == (inside.path, VERSION, SESSION)
    assert said["bytes"] == (folder / "report.nsys-rep").stat().st_size
    assert [len(pair) for pair in said["wall"]] == [2, 2]
    assert ranges.unsupported == {}


def test_an_option_goes_where_this_nsys_takes_it(inside, folder):
    """What start's help knows is given to start; what no help knows is said, by its name."""
    asked = {"gpu-metrics-device": 0, "no-such-thing": True, "cuda-graph-trace": "node"}
    hooks = configured(self_test=False, options=asked)

    ranges = record(hooks, folder)

    assert "--gpu-metrics-device=0" in inside.calls[0]
    assert ranges.unsupported == {"no-such-thing": f"nsys {VERSION} has no option --no-such-thing"}


# failures.md: nsys-hangs
def test_a_start_that_fails_harms_no_later_window(inside, folder):
    """It refuses: it is said, nothing is open, and the next window is whole."""
    hooks = configured(self_test=False)
    inside.goes_wrong(start="fail")

    with pytest.raises(CaptureError, match="nsys start: Agent lost"):
        hooks.start(window=WINDOW, target=TARGET, folder=folder)
    hooks.stop(window=None, folder=folder)

    inside.goes_wrong()
    record(hooks, folder)
    assert notes(folder)["whole"] is True


# failures.md: nsys-hangs
def test_a_call_in_doubt_is_settled_before_the_next_window(inside, folder):
    """After a start that was never answered nsys may be collecting: it is stopped first."""
    hooks = configured(self_test=False, start_s=2)
    inside.goes_wrong(start="hang")
    with pytest.raises(CaptureError, match="nsys start did not return within 2 s and was killed"):
        hooks.start(window=WINDOW, target=TARGET, folder=folder)
    inside.goes_wrong()
    hooks.tool.options = options(self_test=False)  # a busy machine has time for what follows

    record(hooks, folder)

    assert inside.verbs == ["start", "stop", "start", "stop"]


# failures.md: nsys-hangs
@pytest.mark.parametrize(
    ("fault", "left", "said"),
    [
        ({"stop": "hang"}, None, "nsys stop did not return within 5 s and was killed"),
        ({"stop": "empty"}, "report.nsys-rep", "the report is empty: nsys did not write it"),
    ],
)
def test_a_stop_that_goes_wrong_is_told(inside, folder, fault, left, said):
    """What came of the window stands in its notes, and is raised: never called whole."""
    hooks = configured(self_test=False, stop_s=5)
    hooks.start(window=WINDOW, target=TARGET, folder=folder)
    inside.goes_wrong(**fault)

    with pytest.raises(CaptureError, match=said):
        hooks.stop(window=None, folder=folder)
    hooks.stop(window=None, folder=folder)

    assert (notes(folder)["whole"], notes(folder)["bytes"]) == (False, 0)
    assert [file.name for file in folder.glob("report*")] == ([left] if left else [])


# failures.md: folder-removed
def test_a_folder_that_is_not_there_is_refused_before_nsys_is_asked(inside, folder):
    """It would write elsewhere, and say nothing."""
    hooks = configured(self_test=False)

    with pytest.raises(CaptureError, match="is not a folder; nsys would write elsewhere"):
        hooks.start(window=WINDOW, target=TARGET, folder=folder / "gone")

    assert inside.calls == []


def test_a_process_has_one_window_at_a_time(inside, folder, tmp_path):
    """A second one is refused, and its stop leaves the first one's window."""
    first, second = configured(self_test=False), configured(self_test=False)
    other = tmp_path / "other"
    other.mkdir()
    first.start(window=WINDOW, target=TARGET, folder=folder)

    with pytest.raises(CaptureError, match="is collecting already, step_000003/update_actor"):
        second.start(window=WINDOW, target=TARGET, folder=other)
    second.stop(window=None, folder=other)
    first.stop(window=None, folder=folder)

    assert notes(folder)["whole"] is True


# failures.md: nsys-nvtx
def test_ranges_that_nsys_does_not_see_are_told_and_not_counted(inside, folder):
    """A range of the self-test that is not in its report is said as unsupported."""
    inside.goes_wrong(export="blind")
    hooks = configured()

    ranges = record(hooks, folder)

    assert ranges.unsupported["nvtx"].startswith("no ranges of phases: nsys does not see those of")
    assert ranges.unsupported["nvtx"].endswith("or this process was forked and never called exec")
    assert notes(folder)["spans"] == 0
    assert notes(folder)["self_test"] == ranges.unsupported["nvtx"]


def test_a_self_test_that_fails_costs_no_window(inside, folder):
    """Nobody knows whether ranges are seen then; that is said, and the window recorded."""
    inside.goes_wrong(export="fail")
    hooks = configured()

    ranges = record(hooks, folder)

    assert ranges.unsupported == {
        "nvtx": "unknown whether nsys sees ranges of phases: nsys export: Agent lost"
    }
    assert (notes(folder)["whole"], notes(folder)["spans"]) == (True, 3)


# failures.md: nsys-launch
@pytest.mark.parametrize(
    ("mark", "mode", "said"),
    [
        (None, "session", "this process was not started under nsys; put rlprof.launch"),
        (Mark(why="no nsys"), "session", "the program runs unprofiled: no nsys"),
        (None, "attached", "mode attached: this process is not in an nsys session"),
    ],
)
def test_a_process_that_is_not_under_nsys_says_why(nsys, monkeypatch, mark, mode, said):
    """What the Launch has not brought is named, with what to do; nothing hangs on it."""
    monkeypatch.delenv(MARK, raising=False)
    monkeypatch.delenv("NSYS_PROFILING_SESSION_ID", raising=False)
    if mark is not None:
        monkeypatch.setenv(MARK, mark.text())

    with pytest.raises(CaptureError, match=said):
        configured(mode=mode, nsys=nsys.path)


def test_what_was_fixed_at_launch_cannot_be_changed(inside, folder, monkeypatch):
    """What nsys refused at launch is said, and what the program was not started with."""
    asked = {"trace": ["nvtx"], "env": None, "options": {}}
    mark = attrs.evolve(read_mark(os.environ), asked=asked, refused={"ucx": "cannot trace it"})
    monkeypatch.setenv(MARK, mark.text())

    same = record(configured(self_test=False, trace=["nvtx"]), folder)
    other = record(configured(self_test=False, trace=["osrt"], env=[]), folder)

    assert same.unsupported == {"ucx": "cannot trace it"}
    fixed = dict.fromkeys(("trace", "env"), _nsys._FIXED)
    assert other.unsupported == {**same.unsupported, **fixed}
    assert notes(folder)["env"] is None


FORKED = """
import os
from rlprof_nsys._processes import is_forked
if os.fork() == 0:
    print("forked", is_forked(), flush=True)
    os._exit(0)
os.wait()
print("not", is_forked())
"""


def test_a_process_that_was_forked_is_found_out():
    """Nsys sees nothing of a process that never called exec."""
    said = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)

    assert said.stdout.split() == ["forked", "True", "not", "False"]


# failures.md: nsys-launch
def test_a_process_that_was_forked_is_refused(inside, monkeypatch):
    """With what to do about it, by the word of the engine that forks its workers."""
    monkeypatch.setattr(_nsys, "is_forked", lambda: True)

    with pytest.raises(CaptureError, match="VLLM_WORKER_MULTIPROC_METHOD=spawn"):
        configured()


def test_variables_of_an_nsys_that_died_are_taken_away():
    """Children are left alone by nsys; what the user has set stays."""
    environ = {
        "QUADD_AGENT_PID": "1", "NSYS_TSC_SUPPORT": "enable", MARK: "{}", "PATH": "/bin",
        "LD_PRELOAD": "/x/libToolsInjectionProxy64.so:/y/libjemalloc.so",
        "NVTX_INJECTION64_PATH": "/x/libToolsInjection64.so",
        "CUDA_INJECTION64_PATH": "/mine/libother.so",
    }  # fmt: skip

    leave_children_alone(environ)

    assert environ == {
        MARK: "{}", "PATH": "/bin", "LD_PRELOAD": "/y/libjemalloc.so",
        "CUDA_INJECTION64_PATH": "/mine/libother.so",
    }  # fmt: skip
