"""Waiting captures share a helper process; the failure of one export costs that capture only."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

import rlprof
from rlprof.session import _exports
from rlprof.session._exports import RAW, result_of
from tests.cases import cases
from tests.core import authors
from tests.core.steps import train
from tests.core.test_authors import exported

pytestmark = pytest.mark.slow


@pytest.fixture(name="record")
def _record(config):
    """Return a function that records windows and spoils the second before any is exported."""

    def record(spoil=None, *, count=4, **changes):
        with rlprof.open(config(**changes)) as prof:
            prof.scribe.exported = list  # nothing is exported yet
            try:
                train(prof, range(count))
                if spoil is not None:
                    spoil(prof.context.scratch / "step_000001+rollout+fake")
            finally:  # otherwise close() never returns
                del prof.scribe.exported
        return rlprof.read(prof.run_dir).captures

    return record


def signed(captures):
    return [capture.artifacts[0].note for capture in captures]


@pytest.mark.parametrize(("at_once", "helpers"), [(32, 1), (2, 2)])
def test_waiting_captures_share_one_helper(record, monkeypatch, at_once, helpers):
    """One helper exports the waiting captures in order, up to the limit per helper."""
    monkeypatch.setattr(_exports, "_AT_ONCE", at_once)
    rlprof.register("tool", "fake", authors.Signs)

    captures = record()

    assert len(set(signed(captures))) == helpers
    assert str(os.getpid()) not in signed(captures)
    times = [capture.exported_ns for capture in captures]
    assert times == sorted(times)
    assert not any(Path(capture.scratch).exists() for capture in captures)


# failures.md: export-failed
@cases(
    "options, within_s, reason",
    ({"raises_in": "export:die"}, 600, "export: the helper process ended with 3: dying"),
    ({"hangs_in": "export"}, 8, "export: took longer than export_timeout_s 8"),
)
def test_a_helper_that_dies_or_hangs_costs_one_capture(record, options, within_s, reason):
    """A helper that dies or hangs fails one capture, which keeps its raw data and notes where."""

    def spoil(folder):
        noted = json.loads((folder / "capture.json").read_bytes())
        (folder / "capture.json").write_text(json.dumps(noted | {"options": options}))

    captures = record(spoil, limits={"export_timeout_s": within_s})

    assert [capture.state for capture in captures] == ["whole", "failed", "whole", "whole"]
    assert captures[1].notes == (f"{reason}; raw data are kept in {captures[1].scratch}",)


# failures.md: folder-removed
def test_a_class_of_the_script_is_exported_in_the_process(record, monkeypatch):
    """A tool class of the script exports in this process; lost raw data cost one window."""
    mine = type("Mine", (authors.Signs,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Mine", mine, raising=False)
    rlprof.register("tool", "fake", mine)

    captures = record(shutil.rmtree)

    assert [capture.state for capture in captures] == ["whole", "failed", "whole", "whole"]
    assert set(signed([captures[0], *captures[2:]])) == {str(os.getpid())}


def test_raw_data_are_removed_after_the_outcome_is_written(tmp_path, monkeypatch):
    """Raw data are removed only after the outcome is on disk."""
    seen = []
    monkeypatch.setattr(
        shutil, "rmtree", lambda path, **_: seen.append((path, result_of(tmp_path)))
    )

    result = exported(tmp_path, "Signs", {"raw.txt": b"said"})

    assert (seen, result["error"]) == ([(tmp_path / RAW, result)], "")
