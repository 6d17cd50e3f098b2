"""rlprof's own processes import what training imports and end with the process that began them."""

import os
import signal
import subprocess
import sys

import pytest

import rlprof
from rlprof.session import interpreter
from rlprof.session.interpreter import environment, unrecorded_by
from rlprof_run import find_runs
from tests.cases import cases
from tests.core.distributions import install, tool
from tests.waiting import processes, python, wait_until

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
def test_modules_of_the_working_directory_are_not_imported(tmp_path):
    """Exports and measurements import from the script's folder, not from the working directory."""
    home, shadows = tmp_path / "script", tmp_path / "shadows"
    home.mkdir()
    shadows.mkdir()
    for name in ("types", "queue", "json", "signal", "fcntl", "hashlib", "attrs", "rlprof"):
        (shadows / f"{name}.py").write_text(f"raise RuntimeError('{name}.py of {shadows}')\n")
    (home / "profile.py").write_text(TOOL)
    (home / "train.py").write_text(SCRIPT)
    words, env = ("runs", "raw"), os.environ | {"TMPDIR": str(tmp_path)}

    done = python(home / "train.py", *(tmp_path / word for word in words), cwd=shadows, env=env)

    (run,) = map(rlprof.read, find_runs(tmp_path / "runs"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Calibration(")
    assert [capture.state for capture in run.captures] == ["whole", "whole"]
    assert [note for capture in run.captures for note in capture.notes] == []


class Preloads:
    """A tool that loads itself into every child."""

    @staticmethod
    def leave_alone(environ):
        del environ["PROFILER"]


def test_rlprofs_own_processes_lack_its_variables_and_the_tools(monkeypatch):
    """Processes of rlprof get the environment without its own variables and the tool's."""
    monkeypatch.setattr(interpreter, "_unrecorded", [])
    monkeypatch.setenv("RLPROF_RUN_ID", "a-run")
    monkeypatch.setenv("PROFILER", "on")
    monkeypatch.setenv("MINE", "here")

    unrecorded_by(Preloads)

    env = environment()
    assert env["MINE"] == "here"
    assert [name for name in env if name.startswith(("RLPROF_", "PROFILER"))] == []
    assert os.environ["PROFILER"] == "on"


HANGS = """
    import time
    from rlprof import hookimpl

    class Hangs:
        @hookimpl
        def start(self):
            time.sleep(600)

        @staticmethod
        def sample(rounds):
            time.sleep(600)
"""


@pytest.mark.slow
@cases("command, child", ("doctor", '"job": "window"'), ("plan", "rlprof_cli.calibrate_process"))
def test_children_end_with_their_command(command, child, monkeypatch, tmp_path):
    """Ctrl-C ends a command and its child in which a tool hangs."""
    site, here = tmp_path / "site", str(tmp_path)
    site.mkdir()
    install(monkeypatch, site, "rlprof-hangs", HANGS, tool("hangs", "Hangs"))
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    file = tmp_path / "profile.yaml"
    runs = f"run_dir: {tmp_path}/runs\nscratch_dir: {tmp_path}/scratch\n"
    file.write_text(f"{runs}tool: hangs\nsteps: [1]\nroles: {{actor: {{}}}}\n")

    with subprocess.Popen(
        [sys.executable, "-m", "rlprof", command, str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    ) as process:  # fmt: skip
        wait_until(lambda: processes(child, here) or process.poll() is not None, "its child")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)

    assert (process.returncode, err.splitlines()[-1]) == (130, "rlprof: interrupted")
    assert "Traceback" not in err
    wait_until(lambda: not processes(child, here), "the end of its child")
    assert not (tmp_path / "scratch").exists()
