"""Drivers of real vLLM: each is run once, in a process group of its own, and looked at by many."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

import rlprof
from tests.vllm_real.tiny import QUIET

ROOT = Path(__file__).parent.parent.parent
BOUND_S = 300
STEP = re.compile(r"execute_(?:\d+_)?context_\d+\(.*\)_generation_\d+\(.*\)")


@attrs.frozen
class Driven:
    """What a driver has left."""

    home: Path
    told: list[dict]
    """What it told, in order."""
    log: str

    @property
    def has_sessions(self):
        """Whether this vLLM knows sessions of their own, and guards them: since 0.32."""
        (version,) = [one["version"] for one in self.told if "version" in one]
        return tuple(map(int, version.split(".")[:2])) >= (0, 32)

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
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session", name="drive")
def _drive(model, tmp_path_factory):
    """Return a function that runs a driver to its end; what it has started ends with it."""

    def drive(name, *, env=None, prefix=(), **given):
        home = tmp_path_factory.mktemp(name)
        asked = json.dumps({"home": str(home), "model": str(model), **given})
        argv = [*prefix, sys.executable, "-m", f"tests.vllm_real.drivers.{name}"]
        path = os.pathsep.join(map(str, (ROOT, ROOT / "examples/third_party_tool/src")))
        own = {"PYTHONPATH": path, "TMPDIR": str(home), "DRIVE": asked}
        full = os.environ | QUIET | own | (env or {})
        with (home / "log").open("wb") as log:
            child = subprocess.Popen(
                argv, cwd=ROOT, env=full, stdout=log, stderr=log, start_new_session=True
            )
        try:
            child.wait(BOUND_S)
        finally:
            with suppress(ProcessLookupError):  # vLLM leaves orphans of what has died
                os.killpg(child.pid, signal.SIGKILL)
        log = (home / "log").read_text(errors="replace")
        file = home / "told.jsonl"
        told = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        assert (child.returncode, told[-1:]) == (0, [{"done": True}]), log[-4000:]
        return Driven(home, told, log)

    return drive


def trace(run, artifact):
    """Open a trace of *run*."""
    with gzip.open(run.path / artifact.path) as file:
        return json.load(file)


def engine_steps(found):
    """Return the ranges of engine steps in a trace, by their beginning."""
    return sorted(
        (event["ts"], event["name"])
        for event in found["traceEvents"]
        if event.get("ph") == "X" and event.get("cat") == "user_annotation"
        and STEP.fullmatch(event["name"])
    )  # fmt: skip


def wall_ns(found, event_ts):
    """Place a time of a trace on the wall clock."""
    return found["rlprof"]["epoch_ns"] + int(event_ts * 1000)


def traces_of(run, tool, window):
    """Return the traces that *tool* has made of a window, with the capture of each."""
    return [
        (capture, artifact)
        for capture in run.captures
        if capture.tool == tool and capture.window.id == window
        for artifact in capture.artifacts
        if artifact.kind == "trace"
    ]


KNOWN = {
    "requests_in_flight", "requests_running", "requests_waiting", "batch_size", "kv_cache_use"
}  # fmt: skip
"""Counters of an engine whose frontend is in the process that attached it."""


def counters_of(run):
    """Return what was read of the engine, in order; processes tell of their memory."""
    return [one.values for one in run.counters() if "rss_bytes" not in one.values]
