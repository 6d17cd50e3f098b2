"""Folders that are full, read-only, no folders, or removed while training runs."""

from tests.faults import disks
from tests.faults.told import rows

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
def test_a_disk_that_is_full_for_a_while_loses_nothing(lab):
    """What the manifest could not take waits, and is there once there is room again."""
    told = lab.both(LIMITED.format(until=4))

    assert told.captures == [f"{step}/update faulty whole" for step in (1, 2, 3)]
    assert told.processes == ["actor 0/1 ended"]
    assert told.notes == told.problems == []
    assert len([line for line in told.log if "File too large" in line]) == 1


# failures.md: disk-full
def test_a_disk_that_stays_full_keeps_what_it_has(lab):
    """The windows before are whole; the line that did not fit is said to be cut."""
    told = lab.both(LIMITED.format(until=6), tool="torch")  # there is no step 6

    (manifest,) = (told.run.path / "manifest").iterdir()
    assert told.captures == ["1/update torch whole"]
    assert told.processes == ["actor 0/1 died"]
    assert told.notes == []
    assert told.problems == [f"manifest/{manifest.name}: 1 cut line skipped"]
    assert len([line for line in told.log if "File too large" in line]) == 1


# failures.md: disk-full
def test_a_scratch_folder_without_room_fails_the_windows_it_cannot_hold(lab):
    """Those before are whole; of each later one it is said that there was no space."""
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
    assert told.captures == rows(["faulty"], "faulty", ["whole", "failed", "failed"])
    assert told.processes == ["actor 0/1 ended"]
    assert {f"{step}/update faulty: prepare: {reason}" for step in (2, 3)} <= set(told.notes)
    assert told.problems == []
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
def test_a_run_folder_removed_in_mid_run(lab):
    """Nothing more can be kept; training goes on, and the log says once what became of the run."""
    told = lab.both(REMOVED, tool="torch", env={"FAULTS_FOLDER": str(lab.runs)})

    assert told.runs == []
    assert len(told.log) == 1
    assert told.log[0].endswith("was removed; what is in it is lost")


# failures.md: folder-removed
def test_a_scratch_folder_removed_in_mid_run(lab):
    """The window whose raw data went with it is failed; those before and after are whole."""
    lab.keeps_scratch = False

    told = lab.both(REMOVED, tool="torch", env={"FAULTS_FOLDER": str(lab.scratch)})

    assert told.captures == rows(["torch"], "torch", ["whole", "failed", "whole"])
    assert told.processes == ["actor 0/1 ended"]
    assert any("No such file or directory: 'SCRATCH" in note for note in told.notes)
    assert {"2/update"} == {note.split()[0] for note in told.notes}
    assert told.problems == []
    assert len([line for line in told.log if line.startswith("torch.export: ")]) == 1
