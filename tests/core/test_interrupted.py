"""Ctrl-C in a command: one line, 130, and nothing that it has started goes on."""

import os
import signal
import subprocess
import sys

import pytest

from tests.core.distributions import install, tool
from tests.waiting import processes, wait_until

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
@pytest.mark.parametrize(
    ("command", "child"), [("doctor", '"job": "window"'), ("plan", "rlprof_cli.calibrate_process")]
)
def test_children_go_with_the_command(command, child, monkeypatch, tmp_path):
    """A tool that hangs in a dry window, or while it is measured, does not outlive Ctrl-C."""
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

    assert process.returncode == 130
    assert err.splitlines()[-1] == "rlprof: interrupted"
    assert "Traceback" not in err
    wait_until(lambda: not processes(child, here), "the end of its child")
    assert not (tmp_path / "scratch").exists()
