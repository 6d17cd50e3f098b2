"""Two ranks' windows lie as the real `msprof-analyze cluster` takes them."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="run")
def _run(drive, tmp_path_factory):
    """Record the same window on two ranks of one run."""
    home = tmp_path_factory.mktemp("two")
    own = {"RLPROF_RUN_ID": "two", "WORLD_SIZE": "2", "TASK_QUEUE_ENABLE": "0"}
    options = {"contents": ["npu", "cpu"], "level": 1}

    def record(rank):
        return drive("train", options, home=home, env=own | {"RANK": rank})

    with ThreadPoolExecutor() as pool:
        first, second = pool.map(record, ("0", "1"))
    assert (first.returncode, second.returncode) == (0, 0), first.output + second.output
    return first.run


def test_msprof_analyze_takes_both_ranks(run, tmp_path):
    """The command `rlprof ls` prints finds both ranks, and splits the step of each."""
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    listed = subprocess.run(
        [sys.executable, "-m", "rlprof.cli", "ls", str(run.path)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (command,) = re.findall(r"^  (msprof-analyze cluster .*)$", listed, re.MULTILINE)
    program, *arguments = command.split()
    start = "from msprof_analyze.cli.entrance import msprof_analyze_cli as main; main()"
    whole = [sys.executable, "-c", start, *arguments, "-o", str(tmp_path)]

    done = subprocess.run(whole, capture_output=True, text=True, env=env)

    found = list(tmp_path.rglob("cluster_step_trace_time.csv"))
    assert program == "msprof-analyze"
    assert len(found) == 1, done.stdout + done.stderr
    with found[0].open() as file:
        rows = list(csv.DictReader(file))
    assert sorted((row["Type"], row["Index"], row["Step"]) for row in rows) == [
        ("rank", "0", "2"),
        ("rank", "1", "2"),
    ]


def test_the_rank_in_the_role_is_in_the_name(run):
    """`profiler_info` has the rank of the process in its role, once for each."""
    names = {Path(one.path).name for two in run.captures for one in two.artifacts}

    assert {name for name in names if name.startswith("profiler_info")} == {
        "profiler_info_0.json",
        "profiler_info_1.json",
    }
