"""Reading a run folder: everything its files hold, also after a crash."""

import json
import os
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs
import pytest

import rlprof
from rlprof.rundir import Here, as_line
from rlprof.types import Artifact, Target, Window
from rlprof_cli import main
from rlprof_run import find_runs
from tests.cases import cases, refused
from tests.core.steps import record

EPOCH = 1_790_857_026_000_000_000

ACTOR = Target("actor", 0, 2, coordinates={"tp": 0})
ROLLOUT = Window(7, 8, "rollout")
UPDATE = Window(7, 8, "update_actor")
ELSEWHERE = Here("another-host", "boot", "pid:[1]", 4000, "1")
KEY = {"window": attrs.asdict(ROLLOUT), "tool": "fake"}
TRACE = Artifact("step_000007/rollout/actor_0_of_2/fake/a.json", "trace", "chrome-trace", size=9)


def event(name: str, /, mono: int = 500, **fields: Any) -> dict[str, Any]:
    return {"event": name, "mono": mono, **fields}


def beginning(target: Target = ACTOR, here: Here | None = None) -> list[dict[str, Any]]:
    """Make the first lines of a manifest, by default of the calling process."""
    here = Here.now() if here is None else here
    who = {"target": attrs.asdict(target), "here": attrs.asdict(here)}
    return [
        event("process", **who, versions={"torch": "2.9"}),
        event("clock", realtime_ns=EPOCH, monotonic_ns=100, bound_ns=40),
    ]


def artifact(**changes: Any) -> dict[str, Any]:
    return event("artifact", **KEY, artifact=attrs.asdict(attrs.evolve(TRACE, **changes)))


OPENED = event("opened", 1000, **KEY, scratch="/tmp/s", asked={"memory": True})
STARTED = event("started", 1100, **KEY, seconds=0.5, applied={"memory": False}, unsupported={})
CLOSED = event("closed", 2000, **KEY, reason="end", seconds=0.25)
FAILED = event("failed", **KEY, hook="export", error="RuntimeError: no")
EXPORTED = event("exported", 3000, **KEY, seconds=1.5)
ENDED = event("ended")


class Folder:
    """A run folder whose files the tests write."""

    def __init__(self, path: Path, **header: Any) -> None:
        self.path = path
        self.manifest = path / "manifest"
        self.manifest.mkdir(parents=True)
        owner = {"attempt": 1, "opened_ns": EPOCH}
        self.header = {"run_id": "a-run", "owner": owner, **header}
        (path / "run.json").write_text(json.dumps(self.header))

    def write(self, *lines: dict[str, Any], name: str = "actor-0") -> Path:
        file = self.manifest / f"{name}.jsonl"
        file.write_bytes(b"".join(map(as_line, lines)))
        return file

    def read(self) -> rlprof.Run:
        return rlprof.read(self.path)


@pytest.fixture(name="folder")
def _folder(tmp_path):
    """An empty run folder that holds the trace of the lines above."""
    folder = Folder(tmp_path / "runs" / "a-run")
    file = folder.path / TRACE.path
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    (folder.path / "spans").mkdir()
    return folder


def test_a_capture_has_everything_its_lines_say(folder):
    """A capture has the window, tool, options, times, artifacts and notes of its lines."""
    unsupported = {"stack": "not on this GPU"}
    started = STARTED | {"unsupported": unsupported}
    closed = CLOSED | {"reason": "limits.window_s 9 was reached"}
    whole = artifact(note="flows left out", events=3)
    ready = event("configuring", 300, tool="fake"), event("configured", 900, tool="fake")
    folder.write(*beginning(), *ready, OPENED, started, closed, whole, EXPORTED, ENDED)

    (capture,) = folder.read().captures

    assert (capture.configuring_ns - EPOCH, capture.configured_ns - EPOCH) == (200, 800)
    assert (capture.window, capture.target) == (ROLLOUT, ACTOR)
    assert (capture.tool, capture.process, capture.scratch) == ("fake", "actor-0", "/tmp/s")
    assert (capture.asked, capture.applied) == ({"memory": True}, {"memory": False})
    assert unsupported == capture.unsupported
    assert (attrs.evolve(TRACE, note="flows left out", events=3),) == capture.artifacts
    assert capture.notes == ("closed early: limits.window_s 9 was reached", "flows left out")
    assert (capture.opened_ns - EPOCH, capture.closed_ns - EPOCH) == (900, 1900)
    assert (capture.start_s, capture.stop_s, capture.export_s) == (0.5, 0.25, 1.5)
    assert (capture.started_ns - EPOCH, capture.exported_ns - EPOCH) == (1000, 2900)


def test_a_capture_has_the_delays_its_driver_measured(folder):
    """A member's capture has the delays that its driver wrote, and a note."""
    folder.write(*beginning(here=ELSEWHERE), OPENED, STARTED, CLOSED)
    late = {"target": attrs.asdict(ACTOR), **KEY}
    began = event("late", **late, hook="start", seconds=0.5)
    ended = event("late", **late, hook="stop", seconds=2)
    folder.write(*beginning(Target("driver")), began, ended, name="driver-0")

    (capture,) = folder.read().captures

    assert (capture.late_start_s, capture.late_stop_s) == (0.5, 2.0)
    assert capture.notes[-1] == "ended 2.0 s after it was asked to: it was busy"


DONE = [OPENED, STARTED, CLOSED]
CUT = artifact(status="partial", note="cut")
STATES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "recording": ("recording", [OPENED, STARTED]),
    "not started yet": ("recording", [OPENED]),
    "exporting": ("exporting", DONE),
    "whole": ("whole", [*DONE, artifact(), EXPORTED]),
    "partial by the tool": ("partial", [*DONE, CUT, EXPORTED]),
    "partial by a failure": ("partial", [OPENED, STARTED, FAILED, CLOSED, artifact(), EXPORTED]),
    "failed": ("failed", [*DONE, FAILED, EXPORTED]),
    "never started": ("failed", [OPENED, FAILED, CLOSED]),
    "empty": ("empty", [*DONE, EXPORTED]),
}


@pytest.mark.parametrize("case", STATES)
@pytest.mark.parametrize("end", ["running", "ended", "died"])
def test_an_unfinished_capture_is_lost_with_its_process(folder, case, end):
    """An unfinished capture is lost if its process ended; cut spans are a problem then."""
    state, lines = STATES[case]
    expected = "lost" if end != "running" and state in ("recording", "exporting") else state
    here = Here.now() if end == "running" else attrs.evolve(Here.now(), started="1")
    folder.write(*beginning(here=here), *lines, *([ENDED] if end == "ended" else []))
    (folder.path / "spans/actor-0.jsonl").write_text("{")

    run = folder.read()

    assert [end] == [process.state for process in run.processes]
    assert run.is_running is (end == "running") is (run.problems == ())
    assert [expected] == [capture.state for capture in run.captures]


@cases("lines, lacking", ([], "first line"), ([*beginning()[1:], OPENED], "first line"),
       ([beginning()[0]], "clock"))  # fmt: skip
def test_a_manifest_without_its_beginning_is_left_out(folder, lines, lacking):
    """A manifest without its first lines is left out and named, and so is a missing artifact."""
    made = artifact(), artifact(path="gone.json")
    folder.write(*beginning(), OPENED, *made, EXPORTED, ENDED, name="good")
    folder.write(*lines, name="bad")

    run = folder.read()

    assert [process.name for process in run.processes] == ["good"]
    assert [capture.state for capture in run.captures] == ["whole"]
    assert set(run.problems) == {
        f"manifest/bad.jsonl: has no {lacking}; left out",
        "gone.json: is in the manifest and not on disk",
    }


@cases(
    "line",
    event("invented", **KEY, something="new"),
    {"mono": 5},
    event("closed", window=attrs.asdict(UPDATE), tool="fake", reason="end"),
    event("artifact", **KEY, artifact={"path": "x"}),
    event("opened", window=attrs.asdict(UPDATE) | {"start_step": "seventh"}, tool="fake"),
)
def test_a_line_that_does_not_fit_is_skipped(folder, line):
    """An unknown event, or one of a window that was never opened, changes nothing."""
    folder.write(*beginning(), OPENED, STARTED, ENDED)
    before = folder.read()
    folder.write(*beginning(), OPENED, line, STARTED, ENDED)

    assert before == folder.read()


@cases(
    "expected, missing",
    ({}, []),
    ({"actor": "all"}, [Target("actor", 1, 4), Target("actor", 2, 4)]),
    ({"actor": [0, 9]}, [Target("actor", 9, 10)]),
    ({"critic": "all"}, [Target("critic", 0, 1)]),
)
def test_an_expected_rank_without_a_manifest_is_missing(tmp_path, expected, missing):
    """Ranks that the config expects and that have no manifest are missing."""
    folder = Folder(tmp_path / "run", expected=expected)
    for rank in (0, 3):
        folder.write(*beginning(Target("actor", rank, 4)), ENDED, name=f"actor-{rank}")

    assert missing == list(folder.read().missing)


@pytest.mark.parametrize(("quiet_s", "state"), [(0, "running"), (30, "running"), (90, "died")])
def test_another_host_lives_as_long_as_it_writes(folder, quiet_s, state):
    """A process of another host counts as dead after a minute without a new line."""
    file = folder.write(*beginning(here=ELSEWHERE), OPENED)
    wrote = time.time() - quiet_s
    os.utime(file, (wrote, wrote))

    run = folder.read()

    assert ([state], state == "running") == ([p.state for p in run.processes], run.is_running)


@cases(
    "ended, dead, told",
    ("driver", "actor", "ended, 1 died"),
    ("actor", "driver", "died"),
    ("critic", "actor", "ended, 1 died"),
)
def test_a_run_has_the_state_of_its_driver(folder, capsys, ended, dead, told):
    """A run has its driver's state, otherwise it died if all did; `ls` counts the dead."""
    gone = attrs.evolve(Here.now(), started="1")
    folder.write(*beginning(Target(dead), gone), name="dead")
    folder.write(*beginning(Target(ended)), ENDED, name="lives")

    assert main(["ls", str(folder.path)]) == 0

    assert f"a-run: {told}, opened" in capsys.readouterr().out


def test_a_folder_of_runs_stands_for_the_latest(tmp_path, monkeypatch):
    """A folder of runs, `latest` and a run id stand for the run or attempt that opened last."""
    runs, names = tmp_path / "outputs/profile", ["c", "a", "a/attempt_2", "b"]
    paths = [
        Folder(runs / name, owner={"attempt": 1, "opened_ns": EPOCH + at}).path
        for at, name in enumerate(names)
    ]
    os.utime(paths[0] / "run.json")
    (runs / "no-run").mkdir()
    monkeypatch.chdir(tmp_path)

    assert find_runs(runs) == paths
    assert rlprof.read(runs).path == runs / "b"
    assert rlprof.read("latest").path.name == "b"
    assert rlprof.read(runs / "a").path == runs / "a"
    assert [rlprof.read(name).path.name for name in ("b", "a")] == ["b", "attempt_2"]
    assert [main(["ls", name]) for name in ("c", "a/attempt_2", "d")] == [0, 0, 1]


@cases(
    "content",
    b"",
    b'{"run_id": "a-run", "own',
    b'{"run_id": "a-run", "owner": null}',
    b'{"run_id": "a", "owner": {"attempt": 1, "opened_ns": 1}, "config": 5}',
)
def test_an_invalid_header_is_refused(folder, content):
    """A run.json that is empty, cut or incomplete is a RunError that names the file."""
    file = folder.path / "run.json"
    file.write_bytes(content)

    assert refused(rlprof.RunError, folder.read).startswith(f"{file}: cannot be read: ")


# failures.md: later-version
@cases("theirs, is_newer", ("9.0rc1", True), ("0.0.1", False), ("later", False))
def test_a_header_of_a_later_version_names_it(folder, theirs, is_newer):
    """An unreadable header of a newer rlprof is an error that names that version."""
    header = folder.header | {"rlprof": theirs, "expected": {"ranks": {"actor": "0-7"}}}
    (folder.path / "run.json").write_text(json.dumps(header))

    mine = metadata.version("rlprof-run")
    said = f"written by rlprof {theirs}, newer than this {mine}; install the newer one (ValueError("
    begin = f"{folder.path}/run.json: cannot be read: "
    words = refused(rlprof.RunError, folder.read)
    assert words.startswith(begin + (said if is_newer else "ValueError("))


# failures.md: passed-over
@pytest.mark.slow
@cases("place, make, words", ("manifest", os.mkdir, "is a folder, not a file"),
       ("spans", lambda path: path.symlink_to("nowhere"), "is a link to nothing"))  # fmt: skip
def test_every_command_skips_what_is_not_a_regular_file(config, capsys, place, make, words):
    """Every command reports and skips a folder or broken link in place of a file."""
    path = record(config(steps=[1]), [1], "update").run_dir
    make(path / place / "odd.jsonl")

    codes = [main([command, str(path)]) for command in ("ls", "salvage", "export")]

    found = rlprof.read(path)
    assert codes == [0, 0, 0]
    assert found.problems == (f"{place}/odd.jsonl: {words}; passed over",)
    assert f"{place}/odd.jsonl: {words}" in capsys.readouterr().out
    assert [capture.state for capture in found.captures] == ["whole"]
    assert len(list(found.spans())) == 2
