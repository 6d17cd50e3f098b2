"""What a report cannot see: ranks without spans, and files that are lost or cut."""

from __future__ import annotations

import gzip
import json
import os

import pytest

import rlprof
from rlprof_report import analyse
from tests.report.device.made import text_of
from tests.report.folder import EPOCH_NS, Folder
from tests.report.made_runs import make_fleet, make_torchrun


def fleet_of(path, *, world):
    """Write a fleet whose driver stays in log_prob for 0.6 s after actor 0 is done."""
    folder = Folder()
    driver, member = folder.process("driver", 0), folder.process("actor", 0, world=world)
    for step in range(1, 9):
        folder.whole_step(driver, step, {"log_prob": (step, step + 1)})
        folder.span(member, "phase", "log_prob", (step, step + 0.4), step)
    return folder.write(path, until=12)


def test_what_passes_after_the_last_member_is_a_finding(tmp_path):
    """A member without spans may take it, and is named; where all have spans, the driver does."""
    two = analyse(rlprof.read(fleet_of(tmp_path / "two", world=2)))
    one = analyse(rlprof.read(fleet_of(tmp_path / "one", world=1)))

    (hidden,), (alone,) = two.findings, one.findings
    assert (hidden.cause, alone.cause) == ("hidden", "driver")
    assert hidden.title.startswith("0.60 s of log_prob pass after actor 0 is done; ")
    assert (hidden.seconds, hidden.bound_s) == (pytest.approx(0.6), pytest.approx(0.66))
    assert "--role actor --rank all --phase log_prob" in hidden.command
    assert two.verdict.count("actor 1 writes no spans") == 1
    assert alone.title.endswith("after actor 0 is done, the last member with spans.")
    assert alone.command == ""
    assert "writes no spans" not in one.verdict


def test_a_run_without_its_manifests_says_which_are_missing(tmp_path):
    """Spans that no manifest explains are named where the answer stands, not how to mark steps."""
    path = make_torchrun(tmp_path / "run", ranks=1, steps=3)
    (manifest,) = (path / "manifest").iterdir()
    manifest.unlink()

    verdict = analyse(rlprof.read(path)).verdict

    assert f"Missing or damaged in manifest/: {manifest.name}. " in verdict
    assert "prof.step(n)" not in verdict


def test_lost_spans_are_named(tmp_path):
    """So is a rank that left no file at all, but nobody in a run that has just begun."""
    path = make_torchrun(tmp_path / "run", steps=4)
    (lost,) = (path / "spans").glob("trainer-2-*")
    lost.unlink()
    analysis = analyse(rlprof.read(path))
    header = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**header, "expected": {"trainer": "all"}}))
    next((path / "manifest").glob("trainer-2-*")).unlink()
    nothing = analyse(rlprof.read(path))
    young = make_torchrun(tmp_path / "young", steps=1, ended=False)
    next((young / "spans").glob("trainer-2-*")).unlink()

    assert "trainer 2 writes no spans: if it is slow, nothing here shows" in analysis.verdict
    assert analysis.notes[0] == f"spans/{lost.name} is not there: spans of trainer 2 are missing."
    assert analysis.verdict.startswith(f"Cannot tell for sure: {analysis.notes[0]} ")
    assert "trainer 2 writes no spans" in nothing.verdict
    assert nothing.notes[0] == "trainer 2/4: expected, and no manifest is there."
    assert "writes no spans" not in analyse(rlprof.read(young)).verdict


def test_findings_use_the_steps_before_a_file_is_cut(tmp_path):
    """The verdict names a file that ends within a line first; later steps count as unfinished."""
    path = make_fleet(tmp_path / "run", ["tool"], steps=10)
    (cut,) = (path / "spans").glob("agent-*")
    os.truncate(cut, cut.stat().st_size * 6 // 10)

    analysis = analyse(rlprof.read(path))

    lost = f"spans/{cut.name} is cut: spans of agent 0 are missing from step 7 on."
    assert analysis.verdict.startswith(f"Cannot tell for sure: {lost} A step takes ")
    assert [one.cause for one in analysis.findings] == ["tool"]
    assert analysis.clean.left_out == {"warm-up": (1,), "unfinished": (7, 8, 9, 10)}


def test_nobody_is_late_without_what_the_driver_wrote_of_members(tmp_path):
    """Without the phases of members, no phase counts as one that the driver spends alone."""
    path = fleet_of(tmp_path / "run", world=1)
    (path / "spans" / "+ray-driver-0-node-100.jsonl").touch()

    analysis = analyse(rlprof.read(path))

    assert analysis.findings == ()
    assert "+ray-driver-0-node-100.jsonl is empty: phases of the fleet's" in analysis.verdict
    assert "Nothing is odd" not in analysis.verdict


def test_steps_that_a_killed_rank_did_not_end_are_not_clean(tmp_path):
    """Where one rank was killed, no finding uses the steps that others went on with alone."""
    path = make_torchrun(tmp_path / "run", ranks=2, steps=6)
    stem = "trainer-1-node-101"
    for folder, until in (("spans", '"name":"step 4"'), ("manifest", '"event":"ended"')):
        file = path / folder / f"{stem}.jsonl"
        kept, end, _ = file.read_text().partition(until)
        file.write_text(kept.rpartition("\n")[0] + "\n")
        assert end
        os.utime(file, (0, 0))

    analysis = analyse(rlprof.read(path))

    assert analysis.state == "died"
    assert analysis.clean.left_out["unfinished"] == (4, 5, 6)
    assert analysis.verdict.startswith("A step takes ")


def record(path, late):
    """Add a window of backward in step 5 of two ranks; rank *late* comes last to its collective."""
    window = {"start_step": 5, "end_step": 6, "phase": "backward", "occurrence": 0}
    key, began = {"window": window, "tool": "torch"}, 17 * 10**9
    for rank in range(2):
        begun = 90 if rank == late else 0
        note = {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "tid": 1}
        events = [] if late is None else [{**note, "ts": 10 + begun, "dur": 100 - begun}]
        name = f"{rank}.json.gz"
        head = {"epoch_ns": EPOCH_NS + began}
        (path / name).write_bytes(gzip.compress(text_of(events, rlprof=head)))
        artifact = {"path": name, "kind": "trace", "format": "chrome-trace", "size": 1000}
        (file,) = path.glob(f"manifest/trainer-{rank}-*")
        with file.open("a") as lines:
            for more in (
                {"event": "opened", "scratch": "", "asked": {}, "mono": began},
                {"event": "closed", "reason": "end", "seconds": 0.5},
                {"event": "artifact", "artifact": artifact},
                {"event": "exported", "seconds": 0.0},
            ):
                lines.write(json.dumps({"mono": began + 10**9, **key, **more}) + "\n")


def of_meeting(path, **more):
    """Return what the notes of a run say of ranks that meet."""
    notes = analyse(rlprof.read(path), **more).notes
    return [
        one.partition("who is late. ")[2] for one in notes if " together, so their times" in one
    ]


@pytest.mark.parametrize(
    ("late", "told"),
    [
        (1, "In the traces of 5/backward, rank 1 comes last to 1 of 1 collectives."),
        (None, "Nor do the traces of 5/backward: they hold no shared collective."),
    ],
)
def test_ranks_that_meet_are_to_be_recorded_once_in_one_step(late, told, tmp_path):
    """No time says who is late: the line to paste has a step; then the note says what traces do."""
    path = make_torchrun(tmp_path / "run", ranks=2)
    command = "--role trainer --rank all --phase backward --at 7 --tool torch"
    assert of_meeting(path) == [f"Record it once: rlprof capture {tmp_path} {command}"]

    record(path, late)

    assert of_meeting(path) == [told]


def test_a_driver_without_phases_has_those_of_its_members(tmp_path):
    """Calls of one name that overlap are one phase, so that an attached run can be compared."""
    folder = Folder({"tool": "none", "roles": {"actor": {}}})
    driver = folder.process("driver", 0)
    members = [folder.process("actor", rank, world=2) for rank in range(2)]
    for step in range(1, 9):
        for rank, member in enumerate(members):
            folder.span(member, "phase", "update", (step, step + 0.5 + 0.3 * rank), step)
        folder.span(driver, "step", f"step {step}", (step, step + 1), step)

    analysis = analyse(rlprof.read(folder.write(tmp_path / "run", until=12)))

    assert [(one.name, one.median_s) for one in analysis.phases] == [("update", pytest.approx(0.8))]
    assert "straggler" in {one.cause for one in analysis.findings}
