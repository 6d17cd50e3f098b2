"""Processes that train four steps, and record two of them into a bucket."""

import json
import os
import subprocess
import sys

import pytest

import rlprof
from rlprof_cli import main
from tests.waiting import BOUND_S

TRAIN = '''
import json, os, signal, socket, sys
import rlprof, rlprof_bucket._helper

_, said, role, host = sys.argv
socket.gethostname = lambda: host  # else ranks see in /proc whether others live

signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as many programs have it
class Tool:
    @rlprof.hookimpl
    def configure(self, place):
        if place == "process" and "HELD" in os.environ:
            print("configures", flush=True)
            sys.stdin.readline()

    @rlprof.hookimpl
    def start(self):
        """Start nothing."""

    @rlprof.hookimpl
    def stop(self, folder):
        (folder / "raw").write_text("x" * 1000)

    @rlprof.hookimpl
    def export(self, folder, out):
        (out / "one.txt").write_bytes((folder / "raw").read_bytes())
        return [rlprof.Artifact("one.txt", "files", "text")]

rlprof_bucket._helper.LAST_S = int(os.environ.get("LAST_S", "600"))
rlprof.register("tool", "one", Tool)
with rlprof.open(json.loads(said), role=role) as prof:
    print("open", flush=True)
    prof.step(0)
    sys.stdin.readline()
    for step in prof.steps(range(1, 5)):
        with prof.phase("update"):
            pass
print(json.dumps([name for name in sys.modules if name in ("fsspec", "s3fs")]))
'''
"""Its arguments are the config, the role and the host.

It waits for a line before its first step, and prints the packages for buckets it has imported.
"""


@pytest.fixture(name="launch")
def _launch(tmp_path, url):
    """Return a function that starts a rank on a host of its own, which shares no disk."""
    begun = []

    def start(host, rank=0, *, size=2, role="actor", period_s="0.5", env=(), name=None, **given):
        own = {"RANK": str(rank), "WORLD_SIZE": str(size), "RLPROF_RUN_ID": "job-7"}
        own |= {"BUCKET_PERIOD_S": period_s, "RLPROF_QUIET": "0", **dict(env)}
        roles = {key: {"ranks": "all"} for key in ("actor", "critic")}
        said = {"run_dir": url, "scratch_dir": str(tmp_path / host), "roles": roles}
        said |= {"tool": "one", "steps": "1-2", **given}
        begun.append(subprocess.Popen(
            [sys.executable, "-c", TRAIN, json.dumps(said), role, name or host],
            env=os.environ | own, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ))  # fmt: skip
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def trained(process):
    """Let the process train to its end; return its output and log."""
    out, err = process.communicate("go on\n", BOUND_S)
    assert process.returncode == 0, err
    return out, err


def fetched(url, tmp_path, capsys):
    assert main(["fetch", url, "--out", str(tmp_path / "home")]) == 0
    return rlprof.read(capsys.readouterr().out.partition(":")[0])
