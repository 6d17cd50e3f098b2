"""What a report cannot see: ranks without spans, and files that are lost or cut."""

from __future__ import annotations

import json

import pytest

import rlprof
from rlprof_report import analyse
from tests.report.folder import Folder
from tests.report.made_runs import make_fleet, make_torchrun


def fleet_of(path, *, world):
    """Write a fleet whose driver stays in log_prob for 0.6 s after actor 0 is done."""
    folder = Folder()
    driver, member = folder.process("driver", 0), folder.process("actor", 0, world=world)
    for step in range(1, 9):
        folder.span(driver, "phase", "log_prob", (step, step + 1), step)
        folder.span(member, "phase", "log_prob", (step, step + 0.4), step)
        folder.span(driver, "step", f"step {step}", (step, step + 1), step)
    return folder.write(path, until=12)


def test_what_a_hidden_rank_takes_is_a_finding(tmp_path):
    """A phase that outlasts the only member with spans is named, and so is the other member."""
    analysis = analyse(rlprof.read(fleet_of(tmp_path / "run", world=2)))

    (finding,) = analysis.findings
    assert finding.cause == "hidden"
    assert finding.title.startswith("0.60 s of log_prob pass after actor 0 is done; ")
    assert finding.bound_s == pytest.approx(0.6)
    assert "--role actor --rank all --phase log_prob" in finding.command
    assert analysis.verdict.count("actor 1 writes no spans") == 1


def test_a_driver_that_goes_on_alone_is_a_finding(tmp_path):
    """Where all members have spans, nobody is called hidden and there is nothing to record."""
    analysis = analyse(rlprof.read(fleet_of(tmp_path / "run", world=1)))

    (finding,) = analysis.findings
    assert finding.cause == "driver"
    assert finding.title.endswith("after actor 0 is done, the last member with spans.")
    assert finding.command == ""
    assert "writes no spans" not in analysis.verdict


def test_a_run_without_its_manifests_says_which_are_missing(tmp_path):
    """Spans that no manifest explains are named where the answer stands."""
    path = make_torchrun(tmp_path / "run", ranks=1, steps=3)
    (manifest,) = (path / "manifest").iterdir()
    manifest.unlink()

    verdict = analyse(rlprof.read(path)).verdict

    assert f"Missing or damaged in manifest/: {manifest.name}. " in verdict


def test_lost_spans_are_named(tmp_path):
    """A rank whose span file is gone is in the verdict, its file in the notes."""
    path = make_torchrun(tmp_path / "run", steps=4)
    (lost,) = (path / "spans").glob("trainer-2-*")
    lost.unlink()

    analysis = analyse(rlprof.read(path))

    assert "trainer 2 writes no spans: if it is slow, nothing here shows" in analysis.verdict
    assert analysis.notes[0].startswith(f"Missing in spans/: {lost.name}. ")


def test_a_rank_that_left_nothing_is_named(tmp_path):
    """A rank that the config asks for and that has no file is in the verdict and the notes."""
    path = make_torchrun(tmp_path / "run", steps=4)
    header = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**header, "expected": {"trainer": "all"}}))
    for file in path.glob("*/trainer-2-*"):
        file.unlink()

    analysis = analyse(rlprof.read(path))

    assert "trainer 2 writes no spans" in analysis.verdict
    assert analysis.notes[0] == "trainer 2/4: expected, and no manifest is there."


@pytest.mark.parametrize(("make", "stem"), [(make_torchrun, "trainer-0-"), (make_fleet, "driver-")])
def test_spans_that_end_early_are_told(make, stem, tmp_path):
    """A file cut at the end of a line shows fewer steps than the others, and a note says so."""
    path = make(tmp_path / "run", steps=6)
    (cut,) = (path / "spans").glob(f"{stem}*")
    lines = cut.read_text().splitlines(keepends=True)
    ends = [at for at, line in enumerate(lines) if '"kind":"step"' in line]
    cut.write_text("".join(lines[: ends[2] + 1]))

    analysis = analyse(rlprof.read(path))

    assert [one.step for one in analysis.steps] == [1, 2, 3]
    assert analysis.notes[0] == f"spans/{cut.name} is cut: it ends at step 3, others at step 6."
