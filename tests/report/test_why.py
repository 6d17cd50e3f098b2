"""`rlprof why` answers on one screen, whatever it is given."""

from __future__ import annotations

import argparse
import shlex

import pytest

import rlprof
from rlprof_cli import capture, main
from rlprof_report import analyse
from rlprof_report._terminal import HEIGHT
from tests.report.made_runs import make_fleet, make_torchrun


def printed(capsys, *args):
    """Return the lines that the command prints."""
    assert main(["why", *map(str, args)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("more", [(), ("--step", "5")])
def test_the_answer_fits_on_a_screen(more, tmp_path, capsys):
    """At most 24 lines of 100 columns, but what is to be pasted; what has no room is named."""
    path = make_fleet(tmp_path / "run", ["tool", "sync", "gap", "data"], steps=7)
    other = make_fleet(tmp_path / "other", ["gap", "straggler", "sync", "tail"], ranks=4)

    lines, others = printed(capsys, path, *more), printed(capsys, other)

    assert max(len(lines), len(others)) <= HEIGHT == 24
    assert "2 smaller findings are in the report: gap, straggler" in others
    assert [one for one in lines if len(one) > 100 and ": rlprof " not in one] == []
    assert lines[-1].endswith(f"rlprof export {path} --to report")
    assert lines[1].startswith("Step 5 took" if more else "A step takes")


def test_a_short_phase_has_its_time_in_ms(tmp_path, capsys):
    """A phase below a tenth of a second is shown in ms, a longer one in seconds."""
    lines = printed(capsys, make_torchrun(tmp_path / "run", steps=4))

    units = dict(line.split()[::2][:2] for line in lines if line.startswith(("  data", "  optim")))
    assert units == {"data": "ms", "optim": "s"}


@pytest.mark.parametrize(
    ("steps", "told"),
    [("9", "step 9: is not in this run; it has steps 1-4"), ("3,9", "has no step 9; it has 1-4")],
)
def test_a_step_that_is_not_there_is_one_error(steps, told, tmp_path, capsys):
    """The error names the steps of the run, also if the others asked for are there."""
    path = make_torchrun(tmp_path / "run", steps=4)

    assert main(["why", str(path), "--step", steps]) == 1

    assert capsys.readouterr().err.startswith(f"rlprof: {path}: {told}\n")


def test_what_to_record_next_is_a_command_that_parses(tmp_path, monkeypatch):
    """Of a run that goes on the finding has the line that records it, ready to be pasted."""
    path = make_torchrun(tmp_path / "run", ["straggler"], ended=False)
    monkeypatch.setattr("rlprof_run._manifest.is_alive", lambda _: True)

    run = rlprof.read(path)
    finding = analyse(run).findings[0]

    words = shlex.split(finding.command)
    assert words[:3] == ["rlprof", "capture", str(path)]
    parser = argparse.ArgumentParser()
    capture.add(parser.add_subparsers())
    args = parser.parse_args(words[1:])
    assert (args.role, args.phase, args.tool) == (["trainer"], ["forward"], ["torch"])
    assert finding.title.startswith("All wait 0.5")
    assert f"trainer {args.rank}" in finding.title


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "cause"), [(make_torchrun, "straggler"), (make_fleet, "tool"), (make_fleet, "sync")]
)
def test_the_step_to_look_at_shows_the_finding(make, cause, tmp_path, capsys):
    """The pasted line leads to a step whose first finding is the same, to the figure."""
    path = make(tmp_path / "run", [cause], seed=1)
    whole = analyse(rlprof.read(path)).findings[0]
    (line,) = [one for one in printed(capsys, path) if one.startswith("   look at: ")]
    what, _, command = line.partition(": rlprof ")

    assert what == f"   look at: {'; '.join(whole.where)}"
    assert main(shlex.split(command)) == 0
    there = analyse(rlprof.read(path), step=whole.step).findings[0]
    assert whole.title.endswith(there.title)
    assert (there.cause, there.seconds, there.where) == (cause, whole.seconds, whole.where)


def test_a_range_of_steps_is_looked_at_alone(tmp_path, capsys, monkeypatch):
    """`--step 3-5` answers for these steps as for a run: the youngest where runs are written."""
    make_torchrun(tmp_path / "outputs/profile/run", ["straggler"])
    monkeypatch.chdir(tmp_path)

    lines = printed(capsys, "--step", "3-5")

    assert lines[0] == "run run: ended, 3 steps (3 clean): 3-5"
    assert lines[1].startswith("A step takes ")
