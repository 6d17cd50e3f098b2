"""Real processes: several that agree on a run, and ends that nobody planned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rlprof

pytestmark = pytest.mark.slow

HEAD = """
import os, signal, sys, threading, time
sys.path.insert(0, {root!r})
import rlprof
from tests.fakes import tools
tools.register()
config = {config!r}
"""


@pytest.fixture(name="python")
def _python(config, tmp_path):
    """Return a function that starts a process running a script with the config at hand."""
    root = str(Path.cwd())
    started = []

    def start(script, env=None, **changes):
        source = tmp_path / f"script_{len(started)}.py"
        source.write_text(HEAD.format(root=root, config=config(**changes)) + script)
        process = subprocess.Popen(
            [sys.executable, str(source)],
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def only_run(tmp_path):
    (path,) = (tmp_path / "runs").iterdir()
    return rlprof.read(path)


TRAIN = """
with rlprof.open(config, role=os.environ.get("ROLE")) as prof:
    for step in prof.steps(range(2)):
        with prof.phase("rollout"):
            pass
"""


def test_ranks_of_one_launch_share_a_run(python, tmp_path):
    """Four ranks that know only their launcher's address land in one run folder."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "WORLD_SIZE": "4"}
    ranks = {"roles": {"actor": {"ranks": "all"}}}
    processes = [python(TRAIN, {**common, "RANK": str(rank)}, **ranks) for rank in (3, 2, 1, 0)]

    codes = [process.wait(60) for process in processes]

    run = only_run(tmp_path)
    assert codes == [0, 0, 0, 0]
    assert [process.target.rank for process in run.processes] == [0, 1, 2, 3]
    assert {"whole"} == {capture.state for capture in run.captures}
    assert len(run.captures) == 8
    assert run.missing == ()


def test_roles_of_one_run_share_it_by_its_id(python, tmp_path):
    """Processes of several roles meet in the run that RLPROF_RUN_ID names."""
    env = {"RLPROF_RUN_ID": "experiment-7"}
    roles = {"roles": {"actor": {}, "critic": {}}}
    slow = TRAIN.replace("pass", "time.sleep(0.5)")
    processes = [python(slow, {**env, "ROLE": role}, **roles) for role in ("actor", "critic")]

    codes = [process.wait(60) for process in processes]

    run = only_run(tmp_path)
    assert codes == [0, 0]
    assert run.run_id == "experiment-7"
    assert [process.target.role for process in run.processes] == ["actor", "critic"]


def test_a_resumed_run_is_a_new_attempt(python, tmp_path):
    """The same id again overwrites nothing: the second life lives in attempt_2."""
    env = {"RLPROF_RUN_ID": "resumed"}

    codes = [python(TRAIN, env).wait(60) for _ in range(2)]

    first = rlprof.read(tmp_path / "runs/resumed")
    second = rlprof.read(tmp_path / "runs/resumed/attempt_2")
    assert codes == [0, 0]
    assert (first.attempt, second.attempt) == (1, 2)
    assert len(first.captures) == len(second.captures) == 2


def test_a_rank_that_never_came_is_missing(python, tmp_path):
    """The run says which of its expected ranks wrote nothing."""
    env = {"RANK": "0", "WORLD_SIZE": "2"}

    python(TRAIN, env, roles={"actor": {"ranks": "all"}}).wait(60)

    assert [str(target) for target in only_run(tmp_path).missing] == ["actor 1/2"]


def test_kill_9_loses_the_open_window_and_says_so(python, tmp_path):
    """What was recorded before is whole, the window that was open is lost, the run has died."""
    script = """
prof = rlprof.open(config)
prof.step(0)
with prof.phase("rollout"):
    pass
while len(prof.scribe.exports):
    time.sleep(0.05)
prof.step(1)
prof.scribe.flush()
prof.phase("rollout").__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""
    process = python(script)

    code = process.wait(60)

    run = only_run(tmp_path)
    assert code == -signal.SIGKILL
    assert [capture.state for capture in run.captures] == ["whole", "lost"]
    assert [process.state for process in run.processes] == ["died"]
    assert {"rollout", "step 0"} <= {span.name for span in run.spans()}


def test_a_run_can_be_read_while_it_goes_on(python, tmp_path):
    """A live run reads as running, its open window as recording."""
    script = """
prof = rlprof.open(config)
prof.step(0)
with prof.phase("rollout"):
    print("open", flush=True)
    sys.stdin = open(0)
    time.sleep(30)
"""
    process = python(script)
    process.stdout.readline()
    try:
        run = only_run(tmp_path)
    finally:
        process.kill()
        process.wait()

    assert run.is_running
    assert [capture.state for capture in run.captures] == ["recording"]


def test_a_forked_child_leaves_the_run_alone(python, tmp_path):
    """A child forked in a window neither writes nor closes anything, and ends as it likes."""
    script = """
prof = rlprof.open(config)
prof.step(0)
with prof.phase("rollout"):
    child = os.fork()
    if child == 0:
        prof.step(5)
        with prof.phase("rollout"):
            pass
        prof.close()
        sys.exit(3)
    _, status = os.waitpid(child, 0)
prof.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    code = python(script).wait(60)

    run = only_run(tmp_path)
    assert code == 3
    assert [(c.window.id, c.state) for c in run.captures] == [("0/rollout", "whole")]
    assert [span.name for span in run.spans()] == ["rollout", "step 0"]


def test_a_process_that_forgets_to_close_is_closed(python, tmp_path):
    """At the end of the process windows are stopped, exported and the session closed."""
    script = """
prof = rlprof.open(config)
prof.step(0)
prof.phase("rollout").__enter__()
"""
    code = python(script).wait(60)

    run = only_run(tmp_path)
    assert code == 0
    assert [capture.state for capture in run.captures] == ["whole"]
    assert [process.state for process in run.processes] == ["ended"]


def test_no_process_is_left_behind(python, tmp_path):
    """When training has ended, so have its helpers."""
    python(TRAIN).wait(60)

    deadline = time.monotonic() + 60
    while (left := _helpers(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def _helpers(tmp_path):
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    return [line for line in listing.splitlines() if str(tmp_path) in line and "export" in line]


def test_an_unwritable_run_folder_leaves_rlprof_off(python, tmp_path):
    """Where the folder cannot be made, training runs and the log says why."""
    (tmp_path / "file").write_text("")

    process = python(TRAIN + "print('trained')", run_dir=str(tmp_path / "file/runs"))
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out.strip()) == (0, "trained")
    assert "rlprof stays off in this process" in err


def test_a_run_folder_removed_in_mid_run_harms_nobody(python, tmp_path):
    """Training goes on to its own end when the folder is taken away under it."""
    script = """
import shutil
prof = rlprof.open(config)
for step in prof.steps(range(3)):
    with prof.phase("rollout"):
        pass
    shutil.rmtree(prof.run_dir, ignore_errors=True)
prof.close()
sys.exit(5)
"""
    process = python(script)

    _, err = process.communicate(timeout=60)

    assert process.returncode == 5
    assert "was removed; what is in it is lost" in err


def test_a_tool_written_in_the_script_itself_works(python, tmp_path):
    """Trying an idea needs no package: such a tool is exported in the training process."""
    script = """
class Notes:
    @rlprof.hookimpl
    def start(self, window, folder):
        (folder / "note.txt").write_text(window.id)

    @rlprof.hookimpl
    def export(self, capture, folder, out):
        (folder / "note.txt").rename(out / f"{capture.stem}.txt")
        return [rlprof.Artifact(f"{capture.stem}.txt", kind="files", format="text")]

rlprof.register("tool", "notes", Notes)
with rlprof.open(config) as prof:
    prof.step(3)
    with prof.phase("rollout"):
        pass
"""
    code = python(script, tool="notes").wait(60)

    run = only_run(tmp_path)
    (capture,) = run.captures
    assert (code, capture.state) == (0, "whole")
    assert (run.path / capture.artifacts[0].path).read_text() == "3/rollout"


def test_training_waits_for_a_hanging_run_folder_once(python, tmp_path):
    """With a file system that never answers, a window opens a second later, and only the first."""
    script = """
from rlprof.rundir import Journal
prof = rlprof.open(config)
for _ in range(3000):
    time.sleep(0.02)
    if list((prof.run_dir / "manifest").glob("*")):
        break
Journal.write = lambda self, lines: time.sleep(3600)
wait, waits = threading.Event.wait, []
def counted(self, timeout=None):
    if timeout is not None and threading.current_thread() is threading.main_thread():
        waits.append(timeout)
    return wait(self, timeout)
threading.Event.wait = counted
for step in prof.steps(range(5)):
    with prof.phase("rollout"):
        pass
print(waits)
sys.stdout.flush()
os._exit(0)
"""
    process = python(script)
    out, err = process.communicate(timeout=60)

    assert out == "[1.0]\n"
    assert err.count("is slower than 1 s") == 1
