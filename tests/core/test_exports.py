"""Captures that wait share a helper process, and what goes wrong with one costs that one alone."""

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
    """Return a function that records windows, and spoils the second one before all are exported."""

    def record(spoil=None, *, count=4, **changes):
        with rlprof.open(config(**changes)) as prof:
            prof.scribe.exported = list  # nothing is exported yet
            try:
                train(prof, range(count))
                if spoil is not None:
                    spoil(prof.context.scratch / "step_000001+rollout+fake")
            finally:  # else closing waits for ever
                del prof.scribe.exported
        return rlprof.read(prof.run_dir).captures

    return record


def signed(captures):
    return [capture.artifacts[0].note for capture in captures]


@pytest.mark.parametrize(("at_once", "helpers"), [(32, 1), (2, 2)])
def test_what_waits_is_given_to_one_helper(record, monkeypatch, at_once, helpers):
    """One process exports them in order, but no more than its memory bears."""
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
def test_what_goes_wrong_costs_the_capture_it_was_at(record, options, within_s, reason):
    """Captures before and after it are whole; its own raw data stay, and its note says where."""

    def spoil(folder):
        noted = json.loads((folder / "capture.json").read_bytes())
        (folder / "capture.json").write_text(json.dumps(noted | {"options": options}))

    captures = record(spoil, limits={"export_timeout_s": within_s})

    assert [capture.state for capture in captures] == ["whole", "failed", "whole", "whole"]
    assert captures[1].notes == (f"{reason}; raw data are kept in {captures[1].scratch}",)


# failures.md: folder-removed
def test_a_class_of_the_script_is_exported_in_the_process(record, monkeypatch):
    """No other process can import it; removed raw data fail their own window there, too."""
    mine = type("Mine", (authors.Signs,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Mine", mine, raising=False)
    rlprof.register("tool", "fake", mine)

    captures = record(shutil.rmtree)

    assert [capture.state for capture in captures] == ["whole", "failed", "whole", "whole"]
    assert set(signed([captures[0], *captures[2:]])) == {str(os.getpid())}


def test_raw_data_go_only_when_the_outcome_is_on_disk(tmp_path, monkeypatch):
    """A helper that is killed between the two has lost nothing."""
    seen = []
    monkeypatch.setattr(
        shutil, "rmtree", lambda path, **_: seen.append((path, result_of(tmp_path)))
    )

    result = exported(tmp_path, "Signs", {"raw.txt": b"said"})

    assert (seen, result["error"]) == ([(tmp_path / RAW, result)], "")
