"""The windows of two roles' ranks lie as the real `msprof-analyze cluster` takes them."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rlprof

pytestmark = pytest.mark.slow

START = "from msprof_analyze.cli.entrance import msprof_analyze_cli as main; main()"
ROLES, RANKS = ("actor", "critic"), ("0", "1")


def recorded(drive, home, options):
    """Record the same window, in the same phase, on two ranks of each of two roles of one run."""
    own = {"RLPROF_RUN": str(home / "runs/four"), "WORLD_SIZE": "2", "TASK_QUEUE_ENABLE": "0"}

    def record(who):
        role, rank = who
        both = {role: {"ranks": "all"} for role in ROLES}
        env = own | {"RANK": rank, "ROLE": role}
        return drive("train", options, home=home, env=env, roles=both)

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(record, [(role, rank) for role in ROLES for rank in RANKS]))
    assert [one.returncode for one in done] == [0] * 4, done[0].output
    return done[0].run


@pytest.fixture(scope="module", name="run")
def _run(drive, tmp_path_factory):
    """Record host and device of all four as text."""
    options = {"contents": ["npu", "cpu"], "level": 1}
    return recorded(drive, tmp_path_factory.mktemp("four"), options)


def commands(path):
    """Return the commands that `rlprof ls` prints for the run in *path*."""
    listed = subprocess.run(
        [sys.executable, "-m", "rlprof", "ls", str(path)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [line.split() for line in re.findall(r"^  (msprof-analyze .*)$", listed, re.MULTILINE)]


def analysed(command, out):
    """Run *command* for real; return the steps it has split, each with its rank."""
    program, *arguments = command
    assert program == "msprof-analyze"
    whole = [sys.executable, "-c", START, *arguments, "-o", str(out)]
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(whole, capture_output=True, text=True, env=env)
    found = list(out.rglob("cluster_step_trace_time.csv"))
    assert len(found) == 1, done.stdout + done.stderr
    with found[0].open() as file:
        return sorted((row["Type"], row["Index"], row["Step"]) for row in csv.DictReader(file))


def trees(run, role):
    """Return the library's folders of *role*, by name."""
    ours = [one for one in run.captures if one.target.role == role]
    paths = [Path(file.path) for one in ours for file in one.artifacts]
    return {part for path in paths for part in path.parts if part.endswith("_ascend_pt")}


def test_msprof_analyze_takes_both_ranks_of_each_role(run, tmp_path):
    """`rlprof ls` prints a command for each role, also of a run that was moved; both work."""
    (run.path.parent / "moved").mkdir()
    there = run.path.rename(run.path.parent / "moved/elsewhere")
    try:
        found = commands(there)
        rows = [analysed(one, tmp_path / str(number)) for number, one in enumerate(found)]
    finally:
        there.rename(run.path)

    names = ["actor_npu_cluster", "critic_npu_cluster"]
    assert [Path(command[-1]).name for command in found] == names
    assert all(str(there) in command[-1] for command in found)
    assert rows == [[("rank", "0", "2"), ("rank", "1", "2")]] * 2


def test_each_role_is_given_its_own_ranks(run):
    """Below the folder of a role lie the folders of its ranks, and none of another's."""
    window = run.path / "step_000002/update_actor"

    for role in ROLES:
        there = {path.name for path in (window / f"{role}_npu_cluster").iterdir()}
        assert there == trees(run, role)
        assert len(there) == 2


def test_the_rank_in_the_role_is_in_the_name(run):
    """`profiler_info` has the rank of the process in its role, once for each."""
    files = {Path(one.path) for two in run.captures for one in two.artifacts}

    found = sorted(path.name for path in files if path.name.startswith("profiler_info"))
    assert found == ["profiler_info_0.json"] * 2 + ["profiler_info_1.json"] * 2
    assert rlprof.read(run.path).problems == ()
