"""Real processes: several that agree on a run, and one that is read as it runs."""

from __future__ import annotations

import os
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
with rlprof.open(config, role="actor") as prof:
    for step in prof.steps(range(2)):
        with prof.phase("rollout"):
            pass
"""


def test_ranks_of_one_launch_share_a_run(python, tmp_path):
    """Four ranks that know only their launcher's address land in one; no helper stays behind."""
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

    deadline = time.monotonic() + 60
    while (left := _helpers(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def _helpers(tmp_path):
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    return [line for line in listing.splitlines() if str(tmp_path) in line and "export" in line]


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
