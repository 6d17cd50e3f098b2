"""What tests on real engines share: drivers in process groups of their own, and what they leave."""

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

ROOT = Path(__file__).parent.parent
BOUND_S = 300
KNOWN = {
    "requests_in_flight", "requests_running", "requests_waiting", "batch_size", "kv_cache_use"
}  # fmt: skip
"""Counters of an engine whose frontend is in the process that attached it."""


@attrs.frozen
class Driven:
    """What a driver has left."""

    home: Path
    told: list[dict]
    """What it told, in order."""
    log: str

    def of(self, session):
        """Return what was told of a session."""
        return [one for one in self.told if one.get("session") == session]

    def run(self, session):
        """Read the run of a session."""
        return rlprof.read(next(one["run"] for one in self.of(session) if "run" in one))


def interpreter(name):
    """Return the Python of an environment; skip where it is not, but for CI, which can have it."""
    python = ROOT / f".envs/{name}/bin/python"
    if not python.exists():
        why = f"there is no .envs/{name}; `make env-{name}` makes it, or says why it cannot be made"
        (pytest.fail if os.environ.get("CI", "0") not in {"", "0", "false"} else pytest.skip)(why)
    return python


def driven(kind, module, home, env, prefix=()):
    """Run a driver in *home*, behind *prefix*, to its end; return what it leaves, as a *kind*."""
    argv = [*prefix, sys.executable, "-m", module]
    code, log = to_its_end(argv, home / "log", cwd=ROOT, env=env)
    told = lines(home / "told.jsonl")
    assert (code, told[-1:]) == (0, [{"done": True}]), log[-4000:]
    return kind(home, told, log)


def to_its_end(argv, log, *, cwd, env):
    """Run a program; what it has started ends with it. Return its exit code, and what it said."""
    with log.open("wb") as out:
        child = subprocess.Popen(
            argv, cwd=cwd, env=os.environ | env, stdout=out, stderr=out, start_new_session=True
        )
    try:
        code = child.wait(BOUND_S)
    finally:
        with suppress(ProcessLookupError):  # engines leave orphans of what has died
            os.killpg(child.pid, signal.SIGKILL)
    return code, log.read_text(errors="replace")


def example(folder, program, *arguments, log, env):
    """Run a program of an example beside its config; read what it recorded."""
    argv = [sys.executable, *program.split(), *map(str, arguments)]
    code, said = to_its_end(argv, log, cwd=folder, env=env)
    assert code == 0, said[-4000:]
    (found,) = (folder / "outputs/profile").glob("20*")
    return rlprof.read(found)


def small_model(folder, **env):
    """Build the small model, in a process of its own: transformers warns where it likes."""
    argv = [sys.executable, str(ROOT / "examples/ray_rl/tiny_model.py"), str(folder)]
    subprocess.run(argv, env=os.environ | env, check=True, capture_output=True)
    return folder


def lines(file):
    """Read a file of JSON lines, if it is there."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def opened(file):
    """Open a trace."""
    with gzip.open(file) as packed:
        return json.load(packed)


def counters_of(run):
    """Return what was read of the engine, in order; processes tell of their memory."""
    return [one.values for one in run.counters() if "rss_bytes" not in one.values]


def shares_a_report(captures):
    """Whether one of two captures has the report of nsys, and the other says with whom it is."""
    has_it = [any(one.format == "nsys-rep" for one in capture.artifacts) for capture in captures]
    (first,) = [capture for capture, is_there in zip(captures, has_it, strict=True) if is_there]
    (other,) = [capture for capture in captures if capture is not first]
    said = f"one with {first.target}"
    return other.applied["report"] == said and "report" not in first.applied
