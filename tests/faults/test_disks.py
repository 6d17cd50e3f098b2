"""Folders that are full, removed during training, or hung."""

import shutil

import pytest

from tests.faults import disks, processes
from tests.faults.harness import TRAIN
from tests.faults.told import Told, rows
from tests.waiting import BOUND_S, wait_until

LIMITED = """
import resource
from pathlib import Path

def limit(step):
    settle(prof, 1)
    if step == 1 and prof.run_dir is not None:
        (manifest,) = prof.run_dir.glob("manifest/*")
        size = manifest.stat().st_size + 100  # less than a line
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    if step == {until}:
        resource.setrlimit(resource.RLIMIT_FSIZE, 2 * (resource.RLIM_INFINITY,))

with open_session() as prof:
    train(prof, between=limit)
"""


# failures.md: disk-full
@pytest.mark.parametrize(("tool", "until"), [("faulty", 4), ("torch", 6)])  # there is no step 6
def test_lines_wait_for_space_on_a_full_disk(lab, tool, until):
    """Lines wait for space on a full disk; if there never is any, the cut line is named."""
    told = lab.both(LIMITED.format(until=until), tool=tool)

    (manifest,) = (told.run.path / "manifest").iterdir()
    whole, cut = rows([tool], tool, ["whole"] * 3), f"manifest/{manifest.name}: 1 cut line"
    if until == 4:
        told.assert_tells(whole, notes=[], problems=[])
    else:
        told.assert_tells(whole[:1], "actor 0/1 died", notes=[])
        assert [p for p in told.problems if p[:6] != "spans/"] == [f"{cut} skipped"]  # limited, too
    assert len([line for line in told.log if "File too large" in line]) == 1
    assert "Traceback" not in told.real.err


# failures.md: disk-full
def test_a_full_scratch_folder_fails_later_windows_only(lab):
    """A full scratch folder fails the windows it cannot hold, with the reason; others are whole."""
    script = """
def fill():
    settle(prof, 1)
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))

filler = os.environ["FAULTS_DISK"] + "/filler"
with open_session() as prof:
    train(prof, between=lambda step: step == 1 and fill())
os.unlink(filler)
"""
    with disks.tmpfs(lab.scratch, "size=256k"):
        told = lab.both(script, tool="faulty", env={"FAULTS_DISK": str(lab.scratch)})

    reason = "OSError: [Errno 28] No space left on device"
    told.assert_tells(rows(["faulty"], "faulty", ["whole", "failed", "failed"]), problems=[])
    assert {f"{step}/update faulty: prepare: {reason}" for step in (2, 3)} <= set(told.notes)
    assert told.log.count(f"faulty.prepare: {reason}") == 1


REMOVED = """
import shutil

def remove(step):
    if step == 2:
        shutil.rmtree(os.environ["FAULTS_FOLDER"], ignore_errors=True)

with open_session() as prof:
    train(prof, within=remove, between=lambda step: step == 1 and settle(prof, 1))
"""


# failures.md: folder-removed
def test_training_goes_on_without_its_run_folder(lab):
    """Training goes on after its run folder is removed, and the log reports that once."""
    told = lab.both(REMOVED, tool="torch", env={"FAULTS_FOLDER": str(lab.runs)})

    assert (told.runs, len(told.log)) == ([], 1)
    assert told.log[0].endswith("was removed; what is in it is lost")


# failures.md: folder-removed
def test_a_removed_scratch_folder_costs_one_window(lab):
    """Removed raw data fail their own window; those before and after are whole."""
    lab.keeps_scratch = False

    told = lab.both(REMOVED, tool="torch", env={"FAULTS_FOLDER": str(lab.scratch)})

    told.assert_tells(rows(["torch"], "torch", ["whole", "failed", "whole"]), problems=[])
    assert any("No such file or directory: 'SCRATCH" in note for note in told.notes)
    assert {"2/update"} == {note.split()[0] for note in told.notes}
    assert len([line for line in told.log if line.startswith("torch.export: ")]) == 1


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
def test_a_manifest_that_never_opens_delays_no_step(lab):
    """A manifest that never opens delays no step; the exit code holds and scratch has the data."""
    bare = lab.bare(HUNG, env=NAMED)
    child = lab.start(HUNG, tool="torch", env=NAMED)

    wait_until(lambda: "trained" in child.out.read_text(), "training")
    child.wait(60)  # close waits 3 s for this folder; the rest is for a slow machine
    ended = lab.finish(child)

    shutil.rmtree(lab.runs / "hung/manifest")  # otherwise it is a problem of the run
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
    """Training runs with rlprof off if looking for the run hangs."""
    with disks.hung(lab.runs):
        child = lab.start(TRAIN, env=NAMED, limits={"configure_timeout_s": 1})

        try:
            code = child.wait(BOUND_S)
        finally:
            processes.end_all(lab.home)

    assert code == 0
    assert "does not answer" in child.err.read_text()
