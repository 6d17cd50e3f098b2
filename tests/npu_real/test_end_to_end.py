"""One window of host and device, from torch_npu's start to files that can be looked at."""

from __future__ import annotations

import csv
import gzip
import json

import pytest

pytestmark = pytest.mark.slow


def opened(run, capture):
    """Return the trace of *capture*."""
    (found,) = [one for one in capture.artifacts if one.kind == "trace"]
    with gzip.open(run.path / found.path) as file:
        return json.load(file)


def test_a_window_is_whole(trained):
    """The window asked for is whole, and nothing is missing of it."""
    told = [(one.window.id, one.state, one.notes) for one in trained.run.captures]

    assert told == [("2/update_actor", "whole", ())]
    assert trained.run.problems == ()


def test_the_library_has_nothing_to_complain_of(trained):
    """Started and stopped our way, torch_npu prints no warning about it."""
    said = [line for line in trained.output.splitlines() if "schedule" in line.lower()]

    assert said == []


def test_the_trace_lies_on_the_wall_clock(trained):
    """Every operator lies in its window, within what the marks say it may be wrong by."""
    run = trained.run
    trace = opened(run, run.captures[0])

    header = trace["rlprof"]
    adds = [one for one in trace["traceEvents"] if one["name"] == "aten::add"]
    at = [header["epoch_ns"] + one["ts"] * 1000 for one in adds]
    assert len(adds) == 200
    assert 0 <= header["error_ns"] < 10**9  # a wrong base is off by days
    worked = [line.split()[1:] for line in trained.output.splitlines() if line.startswith("worked")]
    began, ended = map(int, worked[1])
    assert began - header["error_ns"] <= min(at)
    assert max(at) <= ended + header["error_ns"]


def test_kernels_are_in_the_trace_and_in_tables(trained):
    """Of the device there are the kernels msprof tells of, under the trainer's step."""
    run = trained.run
    trace = opened(run, run.captures[0])
    (table,) = [one for one in run.captures[0].artifacts if "kernel_details" in one.path]
    with (run.path / table.path).open() as file:
        rows = list(csv.DictReader(file))

    kernels = [one for one in trace["traceEvents"] if one["name"].startswith("Add_")]
    assert len(kernels) == 10
    assert [row["Step Id"] for row in rows] == ["2"] * 10
    assert table.format == "csv"


def test_tables_of_the_step_are_there(trained):
    """`step_trace_time.csv`, by which time is split, and the rank's `profiler_info` are kept."""
    names = {one.path.rpartition("/")[2] for one in trained.run.captures[0].artifacts}

    assert {"step_trace_time.csv", "profiler_info_0.json", "trace_view.json"} <= names


def test_phases_are_ranges_of_our_domain(trained):
    """Each phase is an mstx range in the domain `rlprof`, without quotes, and ends."""
    ours = [one for one in trained.reached if "domain=rlprof" in one]

    assert [line.split("text=")[1] for line in ours if "mstx.start" in line] == [
        "update_actor",
        "inner 'phase'",
    ]
    begun = [one["id"] for one in trained.calls("mstx.end") if one["domain"] == "rlprof"]
    assert len(begun) == 2


def test_the_cpu_alone_has_its_phases_and_a_database(drive):
    """Without the device, phases are ranges of torch; `db` adds a database to the trace."""
    contents = ["cpu", "stack", "module", "memory"]
    done = drive("train", {"contents": contents, "export_type": ["db", "text"]})

    run = done.run
    (capture,) = run.captures
    names = [one["name"] for one in opened(run, capture)["traceEvents"]]
    assert capture.state == "whole", done.output
    assert (names.count("update_actor"), names.count("inner 'phase'")) == (1, 1)
    assert {"sqlite", "chrome-trace"} <= {one.format for one in capture.artifacts}
    assert done.calls("aclprofCreateConfig") == []


def test_no_analysis_keeps_the_raw_data(drive):
    """With `analysis: none`, the raw data come home with their folders, even empty ones."""
    done = drive("train", {"contents": ["npu", "cpu"], "analysis": False})

    (capture,) = done.run.captures
    names = {one.path.rpartition("/")[2] for one in capture.artifacts}
    assert capture.state == "whole"
    assert "torch.op_range" in names
    assert "trace_view.json" not in names
    home = done.run.path / "step_000002/update_actor/actor_0_of_1/npu"
    (prof,) = home.glob("*_ascend_pt/PROF_*")
    assert {path.name for path in prof.iterdir()} == {"device_0", "host"}
