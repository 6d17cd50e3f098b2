"""Exports that wait share a helper process, and what one of them breaks costs it alone."""

from __future__ import annotations

import json
import shutil
import time

import attrs
import pytest

import rlprof
from rlprof.session import _exports
from rlprof.session._exports import Exports, Job
from rlprof.session.export_process import RAW, export, is_done
from tests.fakes import tools

pytestmark = pytest.mark.slow


@pytest.fixture(name="helpers")
def _helpers(monkeypatch):
    """Note how many captures each helper process is given."""
    given = []
    spawn = _exports._spawn

    def spawn_and_note(jobs, timeout_s):
        given.append(len(jobs))
        return spawn(jobs, timeout_s)

    monkeypatch.setattr(_exports, "_spawn", spawn_and_note)
    return given


@pytest.fixture(name="job")
def _job(tmp_path):
    """Return a function that makes a capture of `fake`, as it is left to be exported."""

    def make(step, **options):
        window = rlprof.Window(step, step + 1)
        folder = tmp_path / "scratch" / window.folder
        (folder / "raw").mkdir(parents=True)
        (folder / "raw/raw.txt").write_text("said")
        capture = rlprof.Capture(
            "run", rlprof.Target("actor"), window, "fake", "here", 1, options,
            f"{tools.__name__}:Fake",
        )  # fmt: skip
        (folder / "capture.json").write_text(json.dumps(attrs.asdict(capture)))
        key = {"window": attrs.asdict(window), "tool": "fake"}
        return Job(key, folder, tmp_path / "run" / window.folder, tmp_path / "run")

    return make


def told(exports):
    """Poll *exports* to the end; say what was told of each step: exported, or why not."""
    lines = []
    while len(exports):
        lines += exports.poll()
        time.sleep(0.02)
    return [
        (line["window"]["start_step"], line.get("error", line["event"]))
        for line in lines
        if line["event"] != "artifact"
    ]


def test_what_waits_is_given_to_one_helper(job, helpers):
    """One process exports them one after another, in order."""
    exports = Exports(60, discard=shutil.rmtree)
    jobs = [job(step) for step in range(5)]
    for one in jobs:
        exports.submit(one)

    found = told(exports)

    assert found == [(step, "exported") for step in range(5)]
    assert helpers == [5]
    assert [path for one in jobs for path in [one.folder] if path.exists()] == []


def test_a_helper_is_given_no_more_than_its_memory_bears(job, helpers, monkeypatch):
    """The next one takes the rest."""
    monkeypatch.setattr(_exports, "_AT_ONCE", 2)
    exports = Exports(60, discard=shutil.rmtree)
    for step in range(5):
        exports.submit(job(step))

    found = told(exports)

    assert found == [(step, "exported") for step in range(5)]
    assert helpers == [2, 2, 1]


def test_a_crash_costs_the_capture_it_was_at(job, helpers):
    """Those before it are taken, those after it go to a new helper; each has its own log."""
    exports = Exports(60, discard=shutil.rmtree)
    crashes = job(1, raises_in="export:die")
    for one in (job(0), crashes, job(2), job(3)):
        exports.submit(one)

    found = told(exports)

    reason = f"the helper process ended with 3: dying; raw data are kept in {crashes.folder}"
    assert found == [(0, "exported"), (1, reason), (2, "exported"), (3, "exported")]
    assert helpers == [4, 2]


def test_a_hang_costs_the_capture_it_was_at(job, helpers):
    """Each has the whole time for itself; who is late is killed, and the others go on."""
    exports = Exports(3, discard=shutil.rmtree)
    hangs = job(1, hangs_in="export")
    for one in (job(0), hangs, job(2)):
        exports.submit(one)

    found = told(exports)

    reason = f"took longer than export_timeout_s 3; raw data are kept in {hangs.folder}"
    assert found == [(0, "exported"), (1, reason), (2, "exported")]
    assert helpers == [3, 1]


def test_an_export_that_raises_costs_no_helper(job, helpers):
    """What a tool raised is told, and the same process goes on."""
    exports = Exports(60, discard=shutil.rmtree)
    for one in (job(0, raises_in="export"), job(1)):
        exports.submit(one)

    found = told(exports)

    assert [step for step, _ in found] == [0, 0, 1]
    assert "export says no" in found[0][1]
    assert helpers == [2]


@pytest.mark.parametrize("removed", [0, 1])
def test_a_scratch_folder_that_was_removed_is_named(job, removed):
    """It is said that it is gone, not what the helper process stumbled over."""
    exports = Exports(60, discard=shutil.rmtree)
    jobs = [job(0), job(1)]
    for one in jobs:
        exports.submit(one)
    shutil.rmtree(jobs[removed].folder)

    found = dict(told(exports))

    gone = f"{jobs[removed].folder} was removed, and its raw data with it"
    assert found[removed].startswith(gone)
    assert found[1 - removed] == "exported"


def test_a_folder_removed_before_an_export_in_the_process_is_named(job):
    """The class is the script's own: nothing is raised, and the next one is exported."""
    exports = Exports(60, discard=shutil.rmtree)
    jobs = [attrs.evolve(job(step), in_process=True) for step in (0, 1)]
    for one in jobs:
        exports.submit(one)
    shutil.rmtree(jobs[0].folder)

    found = dict(told(exports))

    assert found[0].startswith(f"{jobs[0].folder} was removed, and its raw data with it")
    assert (found[1], exports.is_here) == ("exported", False)


def test_raw_data_go_only_when_the_outcome_is_on_disk(job, monkeypatch):
    """Who is killed between the two has lost nothing."""
    one = job(0)
    seen = []
    monkeypatch.setattr(
        shutil, "rmtree", lambda path, **_: seen.append((path, is_done(one.folder)))
    )

    export(one.folder, one.out, one.root)

    assert [(one.folder / RAW, True)] == seen
