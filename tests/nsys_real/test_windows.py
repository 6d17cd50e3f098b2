"""Windows of training under the real program: each a whole report, and training as it is alone."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import rlprof

pytestmark = pytest.mark.slow
TRAINING = str(Path(__file__).parent / "training.py")


def train(nsys, home, *, wrapped=True, cwd=None, **asked):
    """Train below *home*, under *nsys* as the config's launch says."""
    home.mkdir()
    options = {"nsys": nsys, "trace": ["nvtx"], "start_s": 30, **asked.pop("options", {})}
    asked["limits"] = {"start_timeout_s": 60}  # a busy host may take longer than the default
    config = {
        "tool": "nsys", "steps": [1], "roles": {"actor": {}}, "tools": {"nsys": options},
        "limits": asked["limits"],
    }  # fmt: skip
    prefix = rlprof.launch(config, role="actor", rank=0).argv_prefix if wrapped else ()
    command = [sys.executable, TRAINING, str(home), json.dumps({**asked, "options": options})]
    temp = home / "tmp"
    temp.mkdir()
    with (home / "said").open("w") as said:
        process = subprocess.Popen(
            [*prefix, *command], stdout=said, stderr=said, cwd=cwd,
            env={**os.environ, "TMPDIR": str(temp)},
        )  # fmt: skip
        process.wait(300)
    return process


def result(home):
    """Return what training said at its end."""
    file = home / "result.json"
    assert file.exists(), (home / "said").read_text()[-4000:]
    return json.loads(file.read_text())


def captures(home):
    """Return the captures of its run, and nothing that it could not read."""
    (run,) = (home / "runs").iterdir()
    return rlprof.read(run).captures


def reports(home):
    """Return the reports, in the order of their windows."""
    return sorted((home / "runs").rglob("*.nsys-rep"), key=str)


def ranges(nsys, report):
    """Return text and payload of the ranges of *report*, but those of a window."""
    tables = report.with_suffix(".test.sqlite")
    subprocess.run(
        [nsys, "export", "-q", "true", "-f", "true", "-t", "sqlite", "-o", str(tables), report],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    with closing(sqlite3.connect(tables)) as found:
        return found.execute(
            "SELECT coalesce(e.text, s.value), e.int64Value FROM NVTX_EVENTS e "
            "LEFT JOIN StringIds s ON s.id = e.textId WHERE e.eventType = 59 ORDER BY e.start"
        ).fetchall()


def processes_below(home):
    """Return what is alive and was born with a folder of *home* as its TMPDIR."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={home}/tmp".encode() in file.read_bytes():
                found.append((file.parent / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def is_clean(home):
    """Whether neither a process nor a folder of nsys is left, soon after the end."""
    end = time.monotonic() + 20
    while processes_below(home) and time.monotonic() < end:
        time.sleep(0.1)
    return (processes_below(home), list((home / "tmp").glob("rlprof-nsys*"))) == ([], [])


@pytest.fixture(scope="module", name="alone")
def _alone(tmp_path_factory):
    """What training learns without rlprof, for each number of steps."""

    def learn(steps):
        home = tmp_path_factory.mktemp("alone") / "home"
        train("nsys", home, wrapped=False, steps=steps, record=False)
        return result(home)["weights"]

    return learn


def test_each_window_is_a_whole_report(nsys, tmp_path, alone):
    """Each window of a process has a report of its own, whose ranges are its phases."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=3)

    assert process.returncode == 0
    learned = result(home)
    assert learned["weights"] == alone(3)
    assert [capture.state for capture in captures(home)] == ["whole"] * 3
    assert {tuple(capture.unsupported) for capture in captures(home)} == {()}
    found = [ranges(nsys, report) for report in reports(home)]
    assert [len(of_one) for of_one in found] == learned["spans"]
    assert found[2] == [("update_actor", 3), *[("forward", 3)] * 3]
    assert is_clean(home)


# failures.md: nsys-quiet
def test_no_file_of_the_folder_it_trains_in_is_run(nsys, tmp_path):
    """Neither nsys nor rlprof runs a Python file of that folder.

    Where `run_dir` is relative, as it is by default, its files are found all the same.
    """
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    for name in ("train", "nvtx_sum"):
        (project / f"{name}.py").write_text(f"open({str(project / 'ran')!r}, 'a').write({name!r})")

    process = train(nsys, home, cwd=project, steps=1, relative=True)

    assert process.returncode == 0
    assert [capture.state for capture in captures(home)] == ["whole"]
    assert {file.name for file in project.iterdir()} == {"train.py", "nvtx_sum.py"}


# failures.md: nsys-killed
def test_a_program_killed_in_a_window_leaves_its_report(nsys, tmp_path):
    """The launcher ends as it was ended, has nsys finish the report, and salvage finds it."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=3, dies_in=2)

    assert process.returncode == -9
    assert is_clean(home)
    (raw,) = (home / "scratch").rglob("report.nsys-rep")
    assert ("update_actor", 2) in ranges(nsys, raw)
    assert json.loads((raw.parent / "nsys.json").read_text())["whole"] is False
    (run,) = (home / "runs").iterdir()
    subprocess.run([sys.executable, "-m", "rlprof", "salvage", run], check=False)
    assert [capture.state for capture in captures(home)] == ["whole", "partial"]


# failures.md: nsys-session
def test_an_nsys_that_is_gone_costs_windows_and_nothing_else(nsys, tmp_path, alone):
    """Its agent is killed: earlier windows stay, and later ones say why they are not there."""
    home = tmp_path / "home"

    process = train(nsys, home, steps=3, breaks_in=2, by="agent")

    assert process.returncode == 0
    assert result(home)["weights"] == alone(3)
    assert result(home)["child"] == "alive\n"
    first, second, third = captures(home)
    assert (first.state, third.state) == ("whole", "failed")
    assert second.state in ("partial", "failed", "empty")
    assert any("nsys has no session" in note for note in third.notes)
    assert is_clean(home)


def test_range_mode_has_a_report_per_window_too(nsys, tmp_path, alone):
    """It waits for a range of the program, ends with it, and writes its report at once."""
    home = tmp_path / "home"

    train(nsys, home, steps=2, options={"mode": "range", "range": "nvtx"})

    assert result(home)["weights"] == alone(2)
    assert [capture.state for capture in captures(home)] == ["whole"] * 2
    assert [len(ranges(nsys, file)) for file in reports(home)] == result(home)["spans"]


# failures.md: nsys-nvtx
def test_ranges_that_nsys_does_not_see_are_told(nsys, tmp_path):
    """An nvtx that does not reach nsys is found out by the self-test; windows are whole."""
    home = tmp_path / "home"

    train(nsys, home, steps=1, blind=True)

    (capture,) = captures(home)
    assert capture.state == "whole"
    assert capture.unsupported["nvtx"].startswith(
        "no ranges of phases: nsys does not see those of nvtx 0.2.11"
    )


@pytest.mark.parametrize(
    "verb",
    [["launch", "--wait=primary"], ["profile", "--start-later=true", "--output=elsewhere"]],
    ids=["launch", "profile"],
)
def test_attached_records_a_process_that_nsys_started(nsys, tmp_path, verb):
    """`nsys launch` and `nsys profile --start-later`, which Ray's `nsight` calls, are as good."""
    home = tmp_path / "home"
    asked = {
        "steps": 2, "options": {"mode": "attached", "nsys": nsys, "start_s": 30},
        "limits": {"start_timeout_s": 60},
    }  # fmt: skip
    home.mkdir()

    subprocess.run(
        [nsys, *verb, "--trace=nvtx", sys.executable, TRAINING, str(home), json.dumps(asked)],
        cwd=tmp_path, capture_output=True, timeout=120, check=True,
    )  # fmt: skip

    assert [capture.state for capture in captures(home)] == ["whole"] * 2
    assert [len(ranges(nsys, file)) for file in reports(home)] == result(home)["spans"]


def test_a_report_holds_no_variable_that_is_not_allowed(nsys, tmp_path, monkeypatch):
    """The whole environment is in each report: `env` keeps what is secret out of it."""
    monkeypatch.setenv("MY_KEY", "token-of-the-user")
    for name, env, expected in (("all", None, True), ("few", [], False)):
        home = tmp_path / name
        train(nsys, home, steps=1, options={"env": env})
        (report,) = reports(home)
        ranges(nsys, report)  # makes the tables
        tables = report.with_suffix(".test.sqlite").read_bytes()
        assert (b"token-of-the-user" in tables) == expected
