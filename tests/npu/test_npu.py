"""The tool on a thin torch_npu: what it asks of the library, and what it makes of its silence."""

from __future__ import annotations

import json
import re
from importlib import metadata

import pytest

from rlprof_npu._library import experimental, refuse_beside_others
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
def test_the_notes_are_there_before_the_end(library, tmp_path):
    """What salvage needs is on disk while the window is open: config, clocks, rank."""
    started().start(WINDOW, TARGET, tmp_path)

    notes = json.loads((tmp_path / "npu.json").read_text())
    assert notes["config"]["common_config"]["activities"] == ["NPU", "CPU"]
    assert notes["start_info"]["start_monotonic"] == 0
    assert notes["rank"] == 3
    assert "sizes" not in notes


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
    options = NpuOptions(mstx_domain_include=("mine",), export_type=("db", "text"))

    fields, lacks = experimental(library.module.profiler, options)

    assert lacks == {}
    assert fields == {
        "profiler_level": "Level0",
        "aic_metrics": "none",
        "export_type": ["db", "text"],
        "data_simplification": True,
        "mstx": True,
        "mstx_domain_include": ["mine", "rlprof"],
    }


def test_a_threshold_of_zero_is_given(library):
    """`gc_detect_threshold: 0` asks for all collections, and is not taken for nothing."""
    fields, _ = experimental(library.module.profiler, NpuOptions(gc_detect_threshold=0.0))

    assert fields["gc_detect_threshold"] == 0.0


@torch
def test_a_mode_that_is_not_ours_is_said(library, tmp_path):
    """Verl's `discrete: false` in a window of a phase is recorded, and said not to be so."""
    recording = started(NpuOptions(discrete=False)).start(WINDOW, TARGET, tmp_path)

    assert recording.unsupported == {
        "discrete": "windows are made by the config; set mode: continuous"
    }


def test_a_monitor_that_is_off_is_none():
    """A variable that is 0 or empty announces no profiler."""
    assert refuse_beside_others({"MSMONITOR_USE_DAEMON": "0", "PROFILING_MODE": ""}) is None


def test_importing_the_plugin_leaves_torch_alone():
    """It asks for nothing that it drives: `import torch` of who installs it is as before."""
    wanted = [one for one in metadata.requires("rlprof-npu") if "extra" not in one]
    offered = metadata.distribution("rlprof-npu").entry_points

    assert sorted(re.match(r"[\w-]+", one)[0] for one in wanted) == [
        "attrs",
        "rlprof-core",
        "rlprof-traces",
    ]
    assert {one.group for one in offered} == {"rlprof.tools"}


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
