"""Actors of Ray, each started under the real nsys by the fleet's launch."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.nsys_real import on_ray
from tests.nsys_real.drive import is_clean, ranges, reports, result

pytestmark = pytest.mark.slow


def test_actors_have_a_report_each_for_every_window(nsys):
    """Each actor has a whole report for every window, and no process of nsys remains."""
    # a short path: names of Ray's sockets are limited
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        (home / "tmp").mkdir()
        env = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "120",
               "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": f"{home}/tmp"}  # fmt: skip

        done = subprocess.run(
            [sys.executable, on_ray.__file__, folder, nsys],
            env=env, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

        assert done.returncode == 0, done.stderr[-4000:]
        said = result(home)
        assert said["facts"] == [[sys.executable, True]] * 2
        assert sorted(map(tuple, said["captures"])) == [
            (f"actor {rank}/2", f"{step}/update", "whole") for rank in range(2) for step in (1, 2)
        ]
        found = sorted(ranges(nsys, report) for report in reports(home))
        assert found == [[("update", step)] for step in (1, 1, 2, 2)]
        assert said["values"] == [on_ray.Actor().update()] * 2
        assert is_clean(home)
