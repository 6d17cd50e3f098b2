"""`rlprof why` answers on one screen, whatever it is given."""

from __future__ import annotations

import argparse
import shlex

import pytest

import rlprof
from rlprof.cli import capture, main
from rlprof.config import load_config
from rlprof_report import analyse
from rlprof_report._findings.words import command_of
from tests.report.folder import Folder
from tests.report.made_runs import make_fleet, make_torchrun


def printed(capsys, *args):
    """Return the lines that the command prints."""
    assert main(["why", *map(str, args)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("more", [(), ("--step", "5")])
def test_the_answer_fits_on_a_screen(more, tmp_path, capsys):
    """At most 24 lines, none wider than 100 columns but what is to be pasted."""
    path = make_fleet(tmp_path / "run", ["tool", "sync", "gap", "data"], steps=7)

    lines = printed(capsys, path, *more)

    assert len(lines) <= 24
    assert [one for one in lines[:-1] if len(one) > 100 and "record it" not in one] == []
    assert lines[-1].endswith(f"rlprof export {path} --to report")
    assert lines[1].startswith("Step 5 took" if more else "A step takes")


def test_a_folder_of_runs_means_its_youngest(tmp_path, capsys):
    """Without the name of a run the one that began last is meant."""
    for name in ("a", "b"):
        make_torchrun(tmp_path / name)

    assert printed(capsys, tmp_path)[0].startswith("run b: ")


def test_the_default_is_where_runs_are_written(tmp_path, capsys, monkeypatch):
    """`rlprof why` alone looks into outputs/profile."""
    make_torchrun(tmp_path / "outputs/profile/one")
    monkeypatch.chdir(tmp_path)

    assert printed(capsys)[0].startswith("run one: ")


def test_a_step_that_is_not_there_is_one_error(tmp_path, capsys):
    """Which steps there are is told with the error."""
    path = make_torchrun(tmp_path / "run", steps=4)

    assert main(["why", str(path), "--step", "9"]) == 1

    told = capsys.readouterr().err
    assert told == f"rlprof: {path}: step 9: is not in this run; it has steps 1-4\n"


def test_a_folder_without_a_run_is_one_error(tmp_path, capsys):
    """What to name instead is told."""
    assert main(["why", str(tmp_path)]) == 1

    told = capsys.readouterr().err
    assert told == f"rlprof: {tmp_path}: holds no run; name a run folder, <run_dir>/<run id>\n"


def test_few_steps_are_an_answer(tmp_path, capsys):
    """With one clean step nothing can be compared, and that is said."""
    path = make_torchrun(tmp_path / "run", ["straggler"], steps=2)

    assert "Too few steps to compare: 1 clean step" in " ".join(printed(capsys, path))


def test_hostile_names_stay_on_their_lines(tmp_path, capsys):
    """A phase may be called anything: no line is torn, no escape reaches the terminal."""
    folder = Folder()
    driver = folder.process("driver", 0)
    for step in range(4):
        folder.span(driver, "phase", "a\x1b[31m\nb" * 30, (step, step + 0.9), step)
        folder.span(driver, "step", f"step {step}", (step, step + 1), step)
    path = folder.write(tmp_path / "run", until=9)

    lines = printed(capsys, path, "--step", 2)

    assert "\x1b" not in "".join(lines)
    assert [one for one in lines[:-1] if len(one) > 100] == []


def test_what_to_record_next_is_a_command_that_parses(tmp_path, monkeypatch):
    """Of a run that goes on the finding has the line that records it, ready to be pasted."""
    path = make_torchrun(tmp_path / "run", ["straggler"], ended=False)
    monkeypatch.setattr("rlprof.rundir._story.is_alive", lambda _: True)

    run = rlprof.read(path)
    finding = analyse(run).findings[0]

    words = shlex.split(finding.command.replace("{run}", str(path)))
    assert words[:3] == ["rlprof", "capture", str(path)]
    parser = argparse.ArgumentParser()
    capture.add(parser.add_subparsers())
    args = parser.parse_args(words[1:])
    assert (args.role, args.phase, args.tool) == ("trainer", ["forward"], ["torch"])
    assert finding.title.startswith("All wait 0.5")
    assert f"trainer {args.rank}" in finding.title


def test_of_a_run_that_is_over_the_config_is_told(tmp_path):
    """The line to record it next time is a config that loads."""
    path = make_torchrun(tmp_path / "run", ["straggler"])

    finding = analyse(rlprof.read(path)).findings[0]

    import yaml

    config = load_config({"run_dir": "x", **yaml.safe_load(finding.command)})
    assert config.roles["trainer"].phases == ("forward",)


def test_nobody_is_told_to_record_the_driver_of_a_fleet(tmp_path):
    """No tool records the driver: there is no command that could."""
    run = rlprof.read(make_fleet(tmp_path / "run", steps=2))

    assert command_of(run, "driver", 0, "rollout") == ""
    assert command_of(run, "nobody", 0, "rollout") == ""
