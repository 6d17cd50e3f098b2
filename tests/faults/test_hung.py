"""A run folder that never answers: training goes on, and ends within a bound."""

import shutil

from tests.faults import disks, processes
from tests.faults.harness import TRAIN
from tests.faults.told import Told
from tests.waiting import BOUND_S, wait_until

HUNG = """
import socket
from pathlib import Path
from rlprof.session import _scribe

_scribe._STUCK_S = 3  # so long is a folder waited for that does not answer; else ten seconds
folder = Path(os.environ["FAULTS_HOME"], "runs/hung/manifest")
folder.mkdir(parents=True, exist_ok=True)
os.mkfifo(folder / f"actor-0-{socket.gethostname()}-{os.getpid()}.jsonl")  # open waits for ever
with open_session() as prof:
    train(prof)
    print("trained", flush=True)
sys.exit(3)
"""

NAMED = {"RLPROF_RUN_ID": "hung"}


# failures.md: folder-hangs
def test_a_file_that_never_opens_holds_neither_steps_nor_exit(lab):
    """The process ends with its own code; what was recorded lies in its scratch folder."""
    bare = lab.bare(HUNG, env=NAMED)
    child = lab.start(HUNG, tool="torch", env=NAMED)

    wait_until(lambda: "trained" in child.out.read_text(), "training")
    child.wait(60)  # close waits three seconds for this folder; the rest is a slow machine's
    ended = lab.finish(child)

    shutil.rmtree(lab.runs / "hung/manifest")  # else it is told as a problem
    told = Told(lab, bare, ended, child.pid)
    told.assert_harmless()
    assert told.real.code == 3
    assert "whole" not in {row.split()[2] for row in told.captures}
    steps = sorted(path.parent.name.partition("+")[0] for path in lab.scratch.rglob("capture.json"))
    assert steps == ["step_000001", "step_000002", "step_000003"]
    for said in ("is slower than 1 s", "does not answer; what is not written yet is lost"):
        assert len([line for line in told.said if said in line]) == 1


# failures.md: no-folder
def test_a_run_that_never_opens_leaves_rlprof_off(lab):
    """Training begins all the same where even looking for the run waits for ever."""
    with disks.hung(lab.runs):
        child = lab.start(TRAIN, env=NAMED, limits={"configure_timeout_s": 1})

        try:
            code = child.wait(BOUND_S)
        finally:
            processes.end_all(lab.home)

    assert code == 0
    assert "does not answer" in child.err.read_text()
