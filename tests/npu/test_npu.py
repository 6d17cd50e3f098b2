"""The tool on a thin torch_npu: what it asks of the library, and what it makes of its silence."""

from __future__ import annotations

import json

import pytest

from rlprof_npu._library import experimental
from rlprof_npu._options import NpuOptions
from tests.npu.windows import CAPTURE, TARGET, WINDOW, exported, started

torch = pytest.mark.slow


@torch
def test_a_window_is_one_step_of_the_library(library, tmp_path):
    """The profiler gets a schedule of one step with the trainer's number, and ends by it."""
    tool = started()
    tool.start(WINDOW, TARGET, tmp_path)
    tool.stop()

    (profile,) = library.profiles
    assert profile.calls == ["start", "step", "stop"]
    assert profile.actions == ["save", "none"]
    assert profile.step_num == 7


@torch
def test_each_window_has_a_profiler_of_its_own(library, tmp_path):
    """A second window has a new object and a new handler, made right before it starts."""
    tool = started()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        tool.start(WINDOW, TARGET, tmp_path / name)
        tool.stop()

    assert len(library.profiles) == 2
    assert library.profiles[0].given["schedule"] is not library.profiles[1].given["schedule"]
    assert library.where == str(tmp_path / "two")


@torch
def test_phases_are_closed_at_the_end(library, tmp_path):
    """Ranges are in our domain, without quotes, and none is left open by a window cut short."""
    tool = started()
    recording = tool.start(WINDOW, TARGET, tmp_path)
    recording.push("update_actor", {"step": 7, "occurrence": 0})
    recording.push('a "b" \\ c', {})
    recording.pop()
    tool.stop()

    assert library.marks.calls == [("update_actor", "rlprof"), ("a 'b' / c", "rlprof")]
    assert library.marks.open == {}


def test_every_field_is_given_by_name(library):
    """Metrics and export are always said, and our domain belongs to those that are included."""
    options = NpuOptions(mstx_domain_include=("mine",), export_type=("db", "text"),
                         gc_detect_threshold=0.0)  # fmt: skip

    fields, lacks = experimental(library.module.profiler, options)

    assert lacks == {}
    assert fields == {
        "profiler_level": "Level0",
        "aic_metrics": "none",
        "export_type": ["db", "text"],
        "data_simplification": True,
        "gc_detect_threshold": 0.0,
        "mstx": True,
        "mstx_domain_include": ["mine", "rlprof"],
    }


@torch
def test_a_mode_that_is_not_ours_is_said(library, tmp_path):
    """Verl's `discrete: false` in a window of a phase is recorded, and said not to be so."""
    recording = started(NpuOptions(discrete=False)).start(WINDOW, TARGET, tmp_path)

    assert recording.unsupported == {
        "discrete": "windows are made by the config; set mode: continuous"
    }


@torch
def test_ranks_lie_by_the_number_in_their_role(library, tmp_path):
    """The library's rank is another: its file gets ours, in name and content."""
    found, out = exported(tmp_path)

    (info,) = [one.path for one in found if "profiler_info" in one.path]
    assert info == (f"{CAPTURE.stem}_20261122204800427_ascend_pt/profiler_info_3.json")
    assert json.loads((out / info).read_text())["rank_id"] == "3"


@torch
def test_a_whole_window_names_its_command(library, tmp_path):
    """Every artifact is whole, and the first says what looks at all ranks of the window."""
    found, _ = exported(tmp_path)

    assert {one.status for one in found} == {"whole"}
    assert [one.kind for one in found] == ["trace", "files", "files", "files"]
    assert [one.command for one in found if one.command] == [
        "msprof-analyze cluster -d {run}/step_000007/update_actor"
    ]
