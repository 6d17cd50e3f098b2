"""Processes of rlprof's own: they find what training finds, and nothing that lies about."""

import os
import subprocess
import sys

import pytest

import rlprof
from rlprof.session import interpreter
from rlprof.session.interpreter import environment, unrecorded_by
from rlprof_run import find_runs

TOOL = """
import rlprof

class Mine:
    runs_on = "process"

    @staticmethod
    def sample(rounds):
        for _ in range(10000 * rounds):
            pass

    @rlprof.hookimpl
    def start(self, folder):
        (folder / "raw").write_text("recorded")

    @rlprof.hookimpl
    def export(self, folder, out):
        (out / "it").write_text((folder / "raw").read_text())
        return [rlprof.Artifact("it", "files", "text")]
"""

SCRIPT = """
import rlprof, profile, sys

rlprof.register("tool", "mine", profile.Mine)
config = {"tool": "mine", "steps": [1, 2], "roles": {"actor": {}},
          "run_dir": sys.argv[1], "scratch_dir": sys.argv[2]}
with rlprof.open(config) as prof:
    for step in prof.steps(range(3)):
        with prof.phase("update"):
            pass
from rlprof.config import check_config
from rlprof_cli import _calibration
_, uses = check_config(config)
print(_calibration.measured(uses["actor"][0]))
"""


# failures.md: all-whole
@pytest.mark.slow
def test_the_working_directory_is_not_looked_into(tmp_path):
    """Exports and measurements are done in one full of traps; the script's own is looked into."""
    home, shadows = tmp_path / "script", tmp_path / "shadows"
    home.mkdir()
    shadows.mkdir()
    for name in ("types", "queue", "json", "signal", "fcntl", "hashlib", "attrs", "rlprof"):
        (shadows / f"{name}.py").write_text(f"raise RuntimeError('{name}.py of {shadows}')\n")
    (home / "profile.py").write_text(TOOL)
    (home / "train.py").write_text(SCRIPT)
    argv = [sys.executable, str(home / "train.py"), str(tmp_path / "runs"), str(tmp_path / "raw")]
    env = os.environ | {"TMPDIR": str(tmp_path)}

    done = subprocess.run(argv, cwd=shadows, env=env, capture_output=True, text=True)

    (run,) = map(rlprof.read, find_runs(tmp_path / "runs"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Calibration(")
    assert [capture.state for capture in run.captures] == ["whole", "whole"]
    assert [note for capture in run.captures for note in capture.notes] == []


class Preloads:
    """A tool that comes into every child."""

    @staticmethod
    def leave_alone(environ):
        del environ["PROFILER"]


def test_what_is_said_to_the_process_that_trains_is_kept_out_of_rlprofs_own(monkeypatch):
    """Variables of rlprof are left out of the environment, and a tool takes itself out."""
    monkeypatch.setattr(interpreter, "_unrecorded", [])
    monkeypatch.setenv("RLPROF_RUN_ID", "a-run")
    monkeypatch.setenv("PROFILER", "on")
    monkeypatch.setenv("MINE", "here")

    unrecorded_by(Preloads)

    env = environment()
    assert env["MINE"] == "here"
    assert [name for name in env if name.startswith(("RLPROF_", "PROFILER"))] == []
    assert os.environ["PROFILER"] == "on"
