"""The program in the plugin's README, run as a user runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

import rlprof
from rlprof_run import find_runs
from tests.ray_fleet.conftest import ROOT

pytestmark = pytest.mark.slow


def test_the_example_starts_raylets_of_its_own_and_is_recorded(tmp_path):
    """Ray is started by the program itself; torch records both actors in step 2."""
    for file in (ROOT / "examples/ray_loop").iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    path = os.pathsep.join(filter(None, sys.path))
    env = os.environ | {"PYTHONPATH": path, "RAY_AUTH_MODE": "disabled"}

    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env=env, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-3000:]
    (run,) = find_runs(tmp_path / "outputs/profile")
    told = [f"{one.window.id} {one.target} {one.state}" for one in rlprof.read(run).captures]
    assert told == [f"2/update_actor actor {rank}/2 whole" for rank in (0, 1)]
