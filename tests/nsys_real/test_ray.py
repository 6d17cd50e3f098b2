"""Actors on three raylets, each born under the real program by what the fleet's launch says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.nsys_real.test_windows import is_clean, ranges, reports

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(name="home")
def _home():
    """A folder of few letters: names of Ray's sockets have room for no more."""
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        (Path(folder) / "tmp").mkdir()
        yield Path(folder)


def test_actors_of_three_raylets_have_a_report_each_for_every_window(nsys, home):
    """Ray starts each actor by the launcher; every window is whole, and nothing is left of nsys."""
    env = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "120",
           "PYTHONPATH": str(ROOT), "TMPDIR": f"{home}/tmp"}  # fmt: skip

    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "on_ray.py"), str(home), nsys],
        env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads((home / "result.json").read_text())
    assert [actor["under_nsys"] for actor in said["facts"]] == [True] * 3
    assert {actor["executable"] for actor in said["facts"]} == {sys.executable}
    assert {(one["who"], one["window"]) for one in said["captures"]} == {
        (f"actor {rank}/3", f"{step}/update") for rank in range(3) for step in (1, 2)
    }
    assert {one["state"] for one in said["captures"]} == {"whole"}
    found = [ranges(nsys, report) for report in reports(home)]
    assert sorted(found) == sorted([("update", step)] for step in (1, 2) for _ in range(3))
    alone = sum(number**0.5 for number in range(10_000))
    assert said["values"] == [[alone + rank for rank in range(3)]] * 2
    assert is_clean(home)
