"""Windows on a stand-in for nsys: the commands it gets, and how faults are reported."""

import os
import subprocess
import sys

import attrs
import pytest

from rlprof import CaptureError, Target, Window
from rlprof_nsys import _nsys
from rlprof_nsys._arguments import MARK, Mark, read_mark
from rlprof_nsys._processes import leave_children_alone
from tests.cases import cases
from tests.fakes.nsys import VERSION
from tests.nsys.conftest import SESSION, configured, notes, options

pytestmark = pytest.mark.slow

WINDOW, TARGET = Window(3, 4, "update_actor"), Target("actor")


def start(hooks, folder):
    return hooks.start(window=WINDOW, target=TARGET, folder=folder)


def record(hooks, folder):
    ranges = start(hooks, folder)
    for step in range(3):
        ranges.push("update", {"step": step, "occurrence": 0})
        ranges.pop()
    hooks.stop(window=None, folder=folder)
    return ranges


def test_a_window_is_a_start_and_a_stop_of_the_session(inside, folder):
    """A window is one `nsys start` and one `nsys stop`, and its report is whole."""
    ranges = record(configured(), folder)

    assert inside.calls == [
        ["start", f"--session={SESSION}", "--sample=none", "--cpuctxsw=none",
         "--force-overwrite=true", f"--output={folder}/report"],
        ["stop", f"--session={SESSION}"],
    ]  # fmt: skip
    said = notes(folder)
    assert [said[key] for key in ("whole", "why", "spans")] == [True, "", 3]
    assert (said["nsys"], said["version"]) == (inside.path, VERSION)
    assert said["bytes"] == (folder / "report.nsys-rep").stat().st_size
    assert ranges.unsupported == {}


def test_an_option_goes_where_this_nsys_takes_it(inside, folder):
    """An option that `nsys start` knows is passed to it; an unknown one is unsupported."""
    asked = {"gpu-metrics-device": 0, "no-such-thing": True, "cuda-graph-trace": "node"}

    ranges = record(configured(options=asked), folder)

    assert "--gpu-metrics-device=0" in inside.calls[0]
    assert ranges.unsupported == {"no-such-thing": f"nsys {VERSION} has no option --no-such-thing"}


# failures.md: nsys-hangs
@cases(
    "fault, why, verbs",
    ("fail", "nsys start: Agent lost", ["start", "start", "stop"]),
    # nsys may be collecting: it is stopped first
    ("hang", "nsys start did not return within 2 s", ["start", "stop", "start", "stop"]),
)
def test_a_start_that_goes_wrong_harms_no_later_window(inside, folder, fault, why, verbs):
    """A start that fails or hangs is an error, and the next window is whole."""
    hooks = configured(start_s=2 if fault == "hang" else 60)
    inside.goes_wrong(start=fault)
    with pytest.raises(CaptureError, match=why):
        start(hooks, folder)
    hooks.stop(window=None, folder=folder)
    inside.goes_wrong()
    hooks.tool.options = options(start_s=60)  # enough for a busy machine

    record(hooks, folder)

    assert inside.verbs == verbs
    assert notes(folder)["whole"] is True


# failures.md: nsys-hangs
@cases(
    "fault, left, said",
    ("hang", [], "nsys stop did not return within 3 s and was killed"),
    ("empty", ["report.nsys-rep"], "the report is empty: nsys did not write it"),
)
def test_a_stop_that_goes_wrong_is_noted(inside, folder, fault, left, said):
    """A stop that hangs or leaves no report is raised and noted, and the next window is whole."""
    hooks = configured(stop_s=3 if fault == "hang" else 10)  # how long each waits
    start(hooks, folder)
    inside.goes_wrong(stop=fault)

    with pytest.raises(CaptureError, match=said):
        hooks.stop(window=None, folder=folder)
    hooks.stop(window=None, folder=folder)

    assert (notes(folder)["whole"], notes(folder)["bytes"]) == (False, 0)
    assert [file.name for file in folder.glob("report*")] == left
    inside.goes_wrong()
    hooks.tool.options = options(start_s=60)
    record(hooks, folder)
    assert notes(folder)["whole"] is True


# failures.md: folder-removed
def test_a_folder_that_is_not_there_is_refused_before_nsys_is_asked(inside, folder):
    """A missing folder is refused without a call of nsys, which would write elsewhere."""
    with pytest.raises(CaptureError, match="is not a folder; nsys would write elsewhere"):
        start(configured(), folder / "gone")

    assert inside.calls == []


# failures.md: nsys-nvtx
@cases(
    "fault, said",
    ("blind", "no ranges of phases: nsys does not see those of nvtx"),
    ("fail", "unknown whether nsys sees ranges of phases: nsys export: Agent lost"),
)
def test_a_self_test_costs_no_window(inside, folder, fault, said):
    """Ranges that nsys does not see are unsupported, and the window is whole."""
    inside.goes_wrong(export=fault)

    ranges = record(configured(self_test=True), folder)

    assert ranges.unsupported["nvtx"].startswith(said)
    assert (notes(folder)["whole"], notes(folder)["spans"]) == (True, 3)
    assert bool(notes(folder)["self_test"]) is (fault == "blind")


# failures.md: nsys-launch
@cases(
    "mark, mode, said",
    (None, "session", "this process was not started under nsys; put rlprof.launch"),
    (Mark(why="no nsys"), "session", "the program runs unprofiled: no nsys"),
    (None, "attached", "mode attached: this process is not in an nsys session"),
)
def test_a_process_that_is_not_under_nsys_says_why(nsys, monkeypatch, mark, mode, said):
    """In a process outside nsys `configure` fails with the reason."""
    monkeypatch.delenv(MARK, raising=False)
    monkeypatch.delenv("NSYS_PROFILING_SESSION_ID", raising=False)
    if mark is not None:
        monkeypatch.setenv(MARK, mark.text())

    with pytest.raises(CaptureError, match=said):
        configured(mode=mode, nsys=nsys.path)


def test_options_fixed_at_launch_are_unsupported_if_changed(inside, folder, monkeypatch):
    """Options that differ from those of the launch are unsupported."""
    mark = attrs.evolve(
        read_mark(os.environ), asked={"trace": ["nvtx"], "env": None, "options": {}}
    )
    monkeypatch.setenv(MARK, mark.text())

    same = record(configured(trace=["nvtx"]), folder)
    other = record(configured(trace=["osrt"], env=[]), folder)

    assert same.unsupported == {}
    assert other.unsupported == dict.fromkeys(("trace", "env"), _nsys._FIXED)
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


# failures.md: nsys-launch
def test_a_forked_process_is_refused(inside, monkeypatch):
    """A forked process is recognized and refused, with the setting of the engine."""
    said = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)
    assert said.stdout.split() == ["forked", "True", "not", "False"]

    monkeypatch.setattr(_nsys, "is_forked", lambda: True)
    with pytest.raises(CaptureError, match="VLLM_WORKER_MULTIPROC_METHOD=spawn"):
        configured()


def test_variables_of_a_dead_nsys_are_removed():
    """The variables of a dead nsys are removed for children; those of the user stay."""
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
