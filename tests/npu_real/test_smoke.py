"""One window of two ranks, from torch_npu's start to files for viewers."""

import csv
import gzip
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.npu_real.programs import OPERATORS

pytestmark = pytest.mark.slow

OPTIONS = {
    "contents": ["npu", "cpu", "shapes", "memory"], "level": 1, "aic_metrics": "Memory",
    "l2_cache": True, "host_sys": ["mem"], "sys_io": True, "sys_interconnection": True,
}  # fmt: skip
LEVEL1, MARKS, MEMORY, L2 = 0x27, 0x80, 0x1000, 0x10
MSPROF_ANALYZE = "from msprof_analyze.cli.entrance import msprof_analyze_cli as main; main()"


@pytest.fixture(scope="module", name="ranks")
def _ranks(drive, tmp_path_factory):
    """Record the same window on two ranks of one run.

    Without the task queue, by which torch_npu would ask kernels where they come from.
    """
    home = tmp_path_factory.mktemp("two")
    own = {"RLPROF_RUN": str(home / "runs/two"), "WORLD_SIZE": "2", "TASK_QUEUE_ENABLE": "0"}

    def record(rank):
        return drive("train", OPTIONS, home=home, env=own | {"RANK": rank})

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(record, ["0", "1"]))


def test_a_window_of_two_ranks_is_whole(ranks):
    """Each rank's window is whole, and its notes name only what CANN cannot confirm."""
    (run,) = {one.run.path: one.run for one in ranks}.values()

    note = "torch_npu does not say whether CANN could record host_sys, sys_io, sys_interconnection"
    told = [(one.window.id, one.target.rank, one.state, one.notes) for one in run.captures]
    assert [one.returncode for one in ranks] == [0, 0], ranks[0].output
    assert run.problems == ()
    assert sorted(told) == [("2/update_actor", rank, "whole", (note,)) for rank in (0, 1)]


def test_options_reach_cann(ranks):
    """Contents, level, metrics and switches arrive at aclprof; each phase is an mstx range."""
    (call,) = ranks[0].calls("aclprofCreateConfig")
    ours = [one for one in ranks[0].reached if "domain=rlprof" in one]

    assert (int(call["bits"], 16), call["metrics"]) == (LEVEL1 | MARKS | MEMORY | L2, "2")
    told = sorted((one["kind"], one["value"]) for one in ranks[0].calls("aclprofSetConfig"))
    assert told == [("3", "50"), ("5", "100"), ("6", "50"), ("8", "mem")]
    phases = [one.split("text=")[1] for one in ours if "mstx.start" in one]
    assert phases == ["update_actor", "inner 'phase'"]
    assert len([one for one in ours if "mstx.end" in one]) == 2


def test_the_trace_lies_on_the_wall_clock(ranks):
    """Every operator lies in its step within the error, and every kernel is in trace and table."""
    run = ranks[0].run
    (capture,) = [one for one in run.captures if one.target.rank == 0]
    paths = [run.path / one.path for one in capture.artifacts]
    with gzip.open(next(path for path in paths if path.name.endswith(".trace.json.gz"))) as file:
        trace = json.load(file)
    with next(path for path in paths if path.name == "kernel_details.csv").open() as file:
        rows = list(csv.DictReader(file))

    header, events = trace["rlprof"], trace["traceEvents"]
    at = [header["epoch_ns"] + one["ts"] * 1000 for one in events if one["name"] == "aten::add"]
    worked = [line.split()[1:] for line in ranks[0].output.splitlines() if "worked" in line]
    began, ended = map(int, worked[1])
    assert len(at) == OPERATORS
    assert 0 <= header["error_ns"] < 10**9  # a wrong base is off by days
    assert began - header["error_ns"] <= min(at)
    assert max(at) <= ended + header["error_ns"]
    assert len([one for one in events if one["name"].startswith("Add_")]) == 10
    assert [row["Step Id"] for row in rows] == ["2"] * 10


def test_msprof_analyze_takes_both_ranks(ranks, tmp_path):
    """The command that `rlprof ls` prints finds both ranks and splits the step of each."""
    listed = subprocess.run(
        [sys.executable, "-m", "rlprof", "ls", str(ranks[0].run.path)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (command,) = [line.split() for line in listed.splitlines() if "msprof-analyze" in line]

    done = subprocess.run(
        [sys.executable, "-c", MSPROF_ANALYZE, *command[1:], "-o", str(tmp_path)],
        capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip

    assert Path(command[-1]).name == "update_actor"
    (table,) = tmp_path.rglob("cluster_step_trace_time.csv")
    with table.open() as file:
        rows = sorted((row["Type"], row["Index"], row["Step"]) for row in csv.DictReader(file))
    assert rows == [("rank", "0", "2"), ("rank", "1", "2")], done.stdout + done.stderr
