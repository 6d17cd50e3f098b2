"""A run folder that never answers: training goes on, and ends within a bound."""

from __future__ import annotations

import shutil

import pytest

from tests.faults import disks, processes
from tests.faults.harness import BOUND_S, wait_for
from tests.faults.told import Told

pytestmark = pytest.mark.slow

HUNG = """
import socket
from pathlib import Path

folder = Path(os.environ["FAULTS_HOME"], "runs/hung/{folder}")
folder.mkdir(parents=True, exist_ok=True)
os.mkfifo(folder / f"actor-0-{{socket.gethostname()}}-{{os.getpid()}}.jsonl")  # open waits for ever
with open_session() as prof:
    train(prof)
    print("trained", flush=True)
sys.exit(3)
"""

NAMED = {"RLPROF_RUN_ID": "hung"}
CLOSE_S = 60
"""Close waits ten seconds for a folder that does not answer; the rest is a slow machine's."""


# failures.md: folder-hangs
def test_a_file_that_never_opens_holds_neither_steps_nor_exit(lab):
    """The process ends with its own code; what was recorded lies in its scratch folder."""
    labs = [lab.within(folder) for folder in ("manifest", "spans")]
    scripts = [HUNG.format(folder=one.home.name) for one in labs]
    bare = lab.bare(scripts[0], env=NAMED)
    children = [
        one.start(script, tool="torch", env=NAMED)
        for one, script in zip(labs, scripts, strict=True)
    ]

    ended = [one.finish(child, trained) for one, child in zip(labs, children, strict=True)]

    for one, child, end in zip(labs, children, ended, strict=True):
        shutil.rmtree(one.runs / "hung" / one.home.name)  # else it is told as a problem
        told = Told(one, bare, end, child.pid)
        told.assert_harmless()
        assert told.real.code == 3
        assert "whole" not in {row.split()[2] for row in told.captures}
        assert sorted(path.parts[-4] for path in one.scratch.rglob("capture.json")) == [
            "step_000001",
            "step_000002",
            "step_000003",
        ]
        for said in ("is slower than 1 s", "does not answer; what is not written yet is lost"):
            assert len([line for line in told.said if said in line]) == 1


def trained(child):
    """Wait until the child has trained, which nothing may hold, and then until it has ended."""
    wait_for(lambda: "trained" in child.out.read_text(), "training")
    child.wait(CLOSE_S)


# failures.md: no-folder
def test_a_run_that_never_opens_leaves_rlprof_off(lab):
    """Training begins all the same where even looking for the run waits for ever."""
    script = """
with open_session() as prof:
    train(prof)
"""
    with disks.hung(lab.runs):
        child = lab.start(script, env=NAMED, limits={"configure_timeout_s": 1})

        try:
            code = child.wait(BOUND_S)
        finally:
            processes.end_all(lab.home)

    assert code == 0
    assert "does not answer" in child.err.read_text()


# failures.md: folder-hangs
def test_a_disk_that_answers_again_loses_nothing(lab):
    """Frozen under the run folder, it holds a step for a second, once; thawed, all is written."""
    script = """
from pathlib import Path

def between(step):
    if step == 1:
        settle(prof, 1)
    if step == 2:
        print("freeze", flush=True)
        while not Path(os.environ["FAULTS_HOME"], "frozen").exists():
            time.sleep(0.02)

with open_session() as prof:
    train(prof, between=between)
"""
    marker = lab.home / "frozen"

    def act(child):
        wait_for(lambda: "freeze" in child.out.read_text(), "step 2")
        if not child.bare:
            disks.run("fsfreeze", "--freeze", lab.runs)
        marker.touch()
        wait_for(lambda: "state 5" in child.out.read_text(), "training on a frozen disk")
        marker.unlink()
        if not child.bare:
            disks.run("fsfreeze", "--unfreeze", lab.runs)

    with disks.ext4(lab.runs):
        told = lab.both(script, tool="torch", act=act)

        assert told.captures == [f"{step}/update torch whole" for step in (1, 2, 3)]
        assert told.processes == ["actor 0/1 ended"]
        assert told.notes == told.problems == []
        assert told.said == ["run folder: RUN is slower than 1 s"]
