"""Shared by tests of real engines: drivers in their own process groups, and their results."""

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
"""Counters of an engine whose frontend runs in the process that attached it."""


@attrs.frozen
class Driven:
    """The results of a driver."""

    home: Path
    told: list[dict]
    """Its messages, in order."""
    log: str

    def of(self, session):
        """Return the messages about a session."""
        return [one for one in self.told if one.get("session") == session]

    def run(self, session):
        """Read the run of a session."""
        return rlprof.read(next(one["run"] for one in self.of(session) if "run" in one))


def interpreter(name):
    """Return the Python of an environment; if it is missing, fail in CI and skip elsewhere."""
    python = ROOT / f".envs/{name}/bin/python"
    if not python.exists():
        why = f"there is no .envs/{name}; `make env-{name}` makes it, or says why it cannot be made"
        (pytest.fail if os.environ.get("CI", "0") not in {"", "0", "false"} else pytest.skip)(why)
    return python


def driven(kind, module, home, env, prefix=()):
    """Run a driver in *home*, behind *prefix*, to its end; return its results as a *kind*."""
    argv = [*prefix, sys.executable, "-m", module]
    code, log = to_its_end(argv, home / "log", cwd=ROOT, env=env)
    told = lines(home / "told.jsonl")
    assert (code, told[-1:]) == (0, [{"done": True}]), log[-4000:]
    return kind(home, told, log)


def to_its_end(argv, log, *, cwd, env):
    """Run a program and end everything it started; return its exit code and output."""
    with log.open("wb") as out:
        child = subprocess.Popen(
            argv, cwd=cwd, env=os.environ | env, stdout=out, stderr=out, start_new_session=True
        )
    try:
        code = child.wait(BOUND_S)
    finally:
        with suppress(ProcessLookupError):  # engines that died leave orphans
            os.killpg(child.pid, signal.SIGKILL)
    return code, log.read_text(errors="replace")


def example(folder, program, *arguments, log, env):
    """Run a program of an example next to its config; read its run."""
    argv = [sys.executable, *program.split(), *map(str, arguments)]
    code, said = to_its_end(argv, log, cwd=folder, env=env)
    assert code == 0, said[-4000:]
    (found,) = (folder / "outputs/profile").glob("20*")
    return rlprof.read(found)


def small_model(folder, **env):
    """Build the small model in its own process, because transformers prints warnings."""
    argv = [sys.executable, str(ROOT / "examples/ray_rl/tiny_model.py"), str(folder)]
    subprocess.run(argv, env=os.environ | env, check=True, capture_output=True)
    return folder


def lines(file):
    """Read a file of JSON lines, or nothing if it is missing."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def opened(file):
    """Open a trace."""
    with gzip.open(file) as packed:
        return json.load(packed)


def counters_of(run):
    """Return the counters of the engine in order, without those of processes."""
    return [one.values for one in run.counters() if "rss_bytes" not in one.values]


def shares_a_report(captures):
    """Whether one of two captures has nsys's report and the other names its owner."""
    has_it = [any(one.format == "nsys-rep" for one in capture.artifacts) for capture in captures]
    (first,) = [capture for capture, is_there in zip(captures, has_it, strict=True) if is_there]
    (other,) = [capture for capture in captures if capture is not first]
    said = f"one with {first.target}"
    return other.applied["report"] == said and "report" not in first.applied
