"""Windows of training under the real nsys: whole reports, and the same training as alone."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import rlprof
from tests.nsys_real.drive import (
    TRAINING,
    captures,
    is_clean,
    ranges,
    reports,
    result,
    states,
    tables_of,
    train,
)  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "options", [{"env": []}, {"mode": "range", "range": "nvtx"}], ids=["session", "range"]
)
def test_each_window_is_a_whole_report(nsys, tmp_path, monkeypatch, alone, options):
    """Each window has a report with the ranges of its phases; `env` keeps secrets out of it."""
    monkeypatch.setenv("MY_KEY", "token-of-the-user")
    home = tmp_path / "home"

    process = train(nsys, home, steps=3, options=options)

    assert process.returncode == 0
    learned = result(home)
    assert learned["weights"] == alone(3)
    assert states(home) == ["whole"] * 3, [capture.notes for capture in captures(home)]
    assert {tuple(capture.unsupported) for capture in captures(home)} == {()}
    found = [ranges(nsys, report) for report in reports(home)]
    assert [len(of_one) for of_one in found] == learned["spans"]
    assert found[-1] == [("update_actor", 3), *[("forward", 3)] * 3]
    tables = tables_of(nsys, reports(home)[0]).read_bytes()
    assert (b"token-of-the-user" in tables) == ("env" not in options)
    assert is_clean(home)


# failures.md: nsys-quiet
def test_nsys_and_rlprof_are_quiet(nsys, tmp_path):
    """No Python file of the training folder is run, and a report has no process but training."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    for name in ("train", "nvtx_sum"):
        (project / f"{name}.py").write_text(f"open({str(project / 'ran')!r}, 'a').write({name!r})")

    options = {"trace": ["nvtx", "osrt"]}
    process = train(nsys, home, cwd=project, steps=1, relative=True, options=options)

    assert process.returncode == 0
    assert states(home) == ["whole"]
    assert {file.name for file in project.iterdir()} == {"train.py", "nvtx_sum.py"}
    (report,) = reports(home)
    with closing(sqlite3.connect(tables_of(nsys, report))) as tables:
        pids = tables.execute("SELECT DISTINCT (globalTid >> 24) & 0xffffff FROM OSRT_API")
        found = pids.fetchall()
    (run,) = (home / "runs").iterdir()
    (process,) = rlprof.read(run).processes
    assert found == [(process.here.pid,)]


# failures.md: nsys-killed
def test_a_program_killed_in_a_window_leaves_its_report(nsys, tmp_path):
    """A program that is killed in a window leaves a report, which salvage makes partial."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=3, dies_in=2)

    assert process.returncode == -9
    assert is_clean(home)
    (raw,) = (home / "scratch").rglob("report.nsys-rep")
    assert ("update_actor", 2) in ranges(nsys, raw)
    assert json.loads((raw.parent / "nsys.json").read_text())["whole"] is False
    (run,) = (home / "runs").iterdir()
    subprocess.run([sys.executable, "-m", "rlprof", "salvage", run], check=False)
    assert states(home) == ["whole", "partial"]


# failures.md: nsys-nvtx
def test_ranges_that_nsys_does_not_see_are_reported(nsys, tmp_path):
    """The self-test finds an nvtx that does not reach nsys, and the window is whole."""
    home = tmp_path / "home"

    train(nsys, home, steps=1, blind=True)

    (capture,) = captures(home)
    assert capture.state == "whole"
    assert capture.unsupported["nvtx"].startswith(
        "no ranges of phases: nsys does not see those of nvtx 0.2.11"
    )
    assert "2 of 2 phases have no range in the report" in capture.notes


@pytest.mark.parametrize(
    "verb",
    [
        ["launch", "--wait=primary"],
        ["profile", "--start-later=true", "--output=elsewhere", "--sample=none", "--cpuctxsw=none"],
    ],
    ids=["launch", "profile"],
)
def test_attached_records_a_process_that_nsys_started(nsys, tmp_path, verb):
    """Mode `attached` records under `nsys launch` and under Ray's `nsys profile --start-later`."""
    # --sample=none: with samples of the CPU, nsys 2023.4.4 may crash in the second window
    home = tmp_path / "home"
    asked = {
        "steps": 2, "options": {"mode": "attached", "nsys": nsys, "start_s": 30},
        "limits": {"start_timeout_s": 60},
    }  # fmt: skip
    for n in range(5):  # on a busy host, nsys may end before it starts anything
        temp = home / f"tmp{n}"
        temp.mkdir(parents=True)  # the machine's own has files of dead sessions
        done = subprocess.run(
            [nsys, *verb, "--trace=nvtx", sys.executable, TRAINING, str(home), json.dumps(asked)],
            cwd=tmp_path, env={**os.environ, "TMPDIR": str(temp)}, capture_output=True,
            timeout=120, text=True, check=False,
        )  # fmt: skip
        if (home / "runs").exists():
            break

    assert done.returncode == 0, done.stdout + done.stderr
    assert states(home) == ["whole"] * 2, [capture.notes for capture in captures(home)]
    assert [len(ranges(nsys, file)) for file in reports(home)] == result(home)["spans"]
