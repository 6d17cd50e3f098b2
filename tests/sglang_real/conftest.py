"""Drivers of real SGLang: each is run once, in a process group of its own; many look at it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

import rlprof
from tests.sglang_real.tiny import QUIET

ROOT = Path(__file__).parent.parent.parent
STAND_INS = Path(__file__).parent / "stand_ins"
BOUND_S = 300
PLUGIN = {
    "METADATA": "Metadata-Version: 2.1\nName: a-framework\nVersion: 1\n",
    "entry_points.txt": (
        "[sglang.srt.plugins]\na-framework = tests.sglang_real.framework:register\n"
        "[rlprof.tools]\nstacks = rlprof_stacks:Stacks\n"
    ),
}


@attrs.frozen
class Driven:
    """What a driver has left."""

    home: Path
    told: list[dict]
    """What it told, in order."""
    framework: list[dict]
    """What the framework's plugin has noted, in all processes; in order within each."""
    log: str
    returncode: int

    def of(self, session):
        """Return what was told of a session."""
        return [one for one in self.told if one.get("session") == session]

    def run(self, session):
        """Read the run of a session."""
        return rlprof.read(next(one["run"] for one in self.of(session) if "run" in one))


@pytest.fixture(scope="session", name="model")
def _model(tmp_path_factory):
    """Build the small model, in a process of its own: transformers warns where it likes."""
    folder = tmp_path_factory.mktemp("model")
    script = ROOT / "examples/ray_rl/tiny_model.py"
    own = {"PYTHONPATH": str(STAND_INS)}
    subprocess.run(
        [sys.executable, str(script), str(folder)],
        env=os.environ | own, check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="session", name="plugin")
def _plugin(tmp_path_factory):
    """Install the framework's plugin into a folder for PYTHONPATH, and a stranger's tool."""
    folder = tmp_path_factory.mktemp("plugin")
    info = folder / "a_framework-1.dist-info"
    info.mkdir()
    for name, text in PLUGIN.items():
        (info / name).write_text(text)
    return folder


@pytest.fixture(scope="session", name="drive")
def _drive(model, plugin, tmp_path_factory):
    """Return a function that runs a driver to its end, once; what it has started ends with it."""
    found = {}

    def drive(name, *, env=None, prefix=(), **given):
        key = json.dumps([name, env, prefix, given], sort_keys=True)
        if key not in found:
            home = tmp_path_factory.mktemp(name)
            asked = json.dumps({"home": str(home), "model": str(model), **given})
            path = (STAND_INS, plugin, ROOT, ROOT / "examples/third_party_tool/src")
            own = {"PYTHONPATH": os.pathsep.join(map(str, path)), "TMPDIR": str(home)}
            found[key] = driven(name, home, QUIET | own | {"DRIVE": asked} | (env or {}), prefix)
        one = found[key]
        assert (one.returncode, one.told[-1:]) == (0, [{"done": True}]), one.log[-4000:]
        return one

    return drive


def driven(name, home, env, prefix=()):
    """Run a driver, behind *prefix*; return what it leaves."""
    argv = [*prefix, sys.executable, "-m", f"tests.sglang_real.drivers.{name}"]
    with (home / "log").open("wb") as log:
        child = subprocess.Popen(
            argv, cwd=ROOT, env=os.environ | env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        child.wait(BOUND_S)
    finally:
        with suppress(ProcessLookupError):  # SGLang leaves orphans of what has died
            os.killpg(child.pid, signal.SIGKILL)
    noted = [one for file in sorted(home.glob("framework-*.jsonl")) for one in lines(file)]
    log = (home / "log").read_text(errors="replace")
    return Driven(home, lines(home / "told.jsonl"), noted, log, child.returncode)


def lines(file):
    """Read a file of JSON lines, if it is there."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def steps(file):
    """Return the names of the forward steps in a trace, in order."""
    with gzip.open(file) as opened:
        events = json.load(opened)["traceEvents"]
    found = [one for one in events if one.get("ph") == "X" and one["name"].startswith("step[")]
    return [one["name"] for one in sorted(found, key=lambda one: one["ts"])]


def captures(run, tool, window):
    """Return the captures that *tool* has made of a window."""
    return [one for one in run.captures if (one.tool, one.window.id) == (tool, window)]


def traces(run, tool, window):
    """Return the files of the schedulers' traces that *tool* has made of a window."""
    found = [art for one in captures(run, tool, window) for art in one.artifacts]
    files = [run.path / one.path for one in found if one.kind == "trace"]
    return sorted(file for file in files if "_requests" not in file.name)


def requests(run, window):
    """Return the slices of whole requests in a window, by their name."""
    found = [art for one in captures(run, "sglang", window) for art in one.artifacts]
    (file,) = [run.path / one.path for one in found if "_requests" in one.path]
    slices = [one for one in opened(file)["traceEvents"] if one.get("cat") == "request"]
    return {one["name"]: one for one in slices if one["name"].startswith("request ")}, slices


def opened(file):
    """Open a trace."""
    with gzip.open(file) as packed:
        return json.load(packed)


KNOWN = {
    "requests_in_flight", "requests_running", "requests_waiting", "batch_size", "kv_cache_use"
}  # fmt: skip
"""Counters of an engine whose frontend is in the process that attached it."""


def counters_of(run):
    """Return what was read of the engine, in order; processes tell of their memory."""
    return [one.values for one in run.counters() if "rss_bytes" not in one.values]
