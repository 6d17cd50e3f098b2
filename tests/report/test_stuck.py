"""Runs that hang, or hung until they were ended."""

import os

import pytest

import rlprof
from rlprof_report import analyse
from tests.cases import cases
from tests.report.folder import Folder


def hanging(folder, *, late=()):
    """Write three ranks with ten steps of a second; in step 11, *late* ranks end no update."""
    for rank in range(3):
        stem = folder.process("actor", rank, world=3)
        for step in range(1, 11):
            ends = step + 0.3, step + 1
            folder.whole_step(stem, step, {"rollout": (step, ends[0]), "update": ends})
        folder.span(stem, "phase", "rollout", (11, 11.3), 11)
        if rank not in late and late:
            folder.span(stem, "phase", "update", (11.3, 11.3), 11)
    return stem


@cases(
    "late, words",
    ((), "actor 0-2 ended rollout of step 11; update usually follows."),
    ((1,), "actor 1 has not ended update of step 11, and actor 0 and 2 did."),
    ((1, 2), "actor 1-2 have not ended update of step 11, and actor 0 did."),
)
def test_a_hung_run_names_the_phase_that_did_not_end(late, words, tmp_path, monkeypatch):
    """The verdict of a hung run names the ranks that did not end a phase, and the phase."""
    monkeypatch.setattr("rlprof_run._manifest.is_alive", lambda _: False)
    hanging(folder := Folder(), late=late)
    run = rlprof.read(folder.write(tmp_path / "run", until=60, ended=False))

    assert f" and no step took longer than 1.00 s: {words}" in analyse(run).verdict
    assert analyse(run, step=11).verdict.startswith("No phase ended in the last 48.")


@pytest.mark.parametrize(
    ("until", "error"), [(60, "KeyboardInterrupt"), (13, "OSError"), (60, None)]
)
def test_an_interrupted_phase_did_not_end(until, error, tmp_path):
    """A run that stood still until Ctrl-C hung; one that failed soon or ended well did not."""
    stem = hanging(folder := Folder())
    folder.span(stem, "phase", "update", (11.3, until if error else 12), 11, error=error)

    run = rlprof.read(folder.write(tmp_path / "run", until=until))

    assert ("No phase ended in the last 48.70 s" in analyse(run).verdict) == (
        error == "KeyboardInterrupt"
    )


def test_a_live_run_that_hangs_names_the_process_to_look_at(tmp_path, monkeypatch):
    """The verdict of a live run that hangs has the py-spy command and no capture command."""
    hanging(folder := Folder(is_alive=True), late=(2,))
    monkeypatch.setattr("time.time_ns", lambda: folder._epoch_ns + 60 * 10**9)

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=11.5)))

    assert "actor 2 has not ended update of step 11" in analysis.verdict
    assert f"py-spy dump --pid {os.getpid()} on " in analysis.verdict
    assert not [one for one in analysis.notes if "rlprof capture" in one]
