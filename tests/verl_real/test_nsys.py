"""verl's own workers under Nsight Systems, without the rest of its loop."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import rlprof
from tests.real_nsys import real_nsys


def test_a_chosen_worker_of_verl_has_a_report_for_its_window():
    """Only the chosen rank starts under nsys, and its window has a whole report."""
    nsys, script = real_nsys(), Path(__file__).with_name("workers.py")
    with tempfile.TemporaryDirectory(prefix="rl", dir="/tmp", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        argv = [sys.executable, str(script), folder, nsys]
        own = {"RAY_TMPDIR": folder, "RAY_ADDRESS": "local", "RAY_AUTH_MODE": "disabled"}

        done = subprocess.run(
            argv, env=os.environ | own, capture_output=True, text=True, timeout=300
        )

        assert done.returncode == 0, done.stderr[-4000:]
        assert json.loads((home / "said.json").read_text()) == [[0, False, "ray"], [1, True, "ray"]]
        (path,) = (home / "runs").iterdir()
        run = rlprof.read(path)
        (capture,) = run.captures
        found = (str(capture.target), capture.window.id, capture.tool, capture.state)
        assert found == ("actor 1/2", "2/update_actor", "nsys", "whole")
        assert {one.format for one in capture.artifacts} >= {"nsys-rep"}
