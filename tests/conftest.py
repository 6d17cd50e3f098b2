"""Fixtures for all tests: the fake tools, a config that names one, a session from it."""

from __future__ import annotations

import os
import signal
import sys
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlprof import plugins
from rlprof.session import _current
from rlprof_live import _pauses
from tests.fakes import tools

# Background jobs of a shell ignore Ctrl-C, and so would every process that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

DRIVEN = {"vllm": "vllm", "sglang": "sglang", "npu": "torch_npu", "loggers": "wandb",
          "verl": "verl", "bucket": "moto"}  # fmt: skip
"""Each has a folder of tests with the real package, and an environment for them."""
ABSENT = [name for name, module in DRIVEN.items() if find_spec(module) is None]
ASKED = ("nsys",)
"""The program lies outside of the environment; these tests run only if named."""
collect_ignore = [*(f"{name}_real" for name in (*ABSENT, *ASKED)), "edited"]

_LAUNCHERS = ("RLPROF_", "TORCHELASTIC_", "SLURM_", "OMPI_", "RANK", "WORLD_SIZE", "MASTER_",
              "VLLM_PLUGINS", "SGLANG_PLUGINS", "SGLANG_PROFILE_V2")  # fmt: skip


def pytest_report_header():
    """List the tests that need their own environment or run only by name."""
    absent = [f"tests/{one}_real: not in this environment; `make test-{one}`" for one in ABSENT]
    asked = [f"tests/{one}_real: only by name; `make test-{one}`" for one in ASKED]
    return [*absent, *asked, "tests/edited: only by name; `make test-edited`"]


_entry_points = metadata.entry_points


@cache
def _offered(_: object) -> metadata.EntryPoints:
    return _entry_points()


def _entry_points_read_once(**wanted: str) -> metadata.EntryPoints:
    """Read all distributions (10 ms) again only if a folder on the path has changed."""
    places = [place for place in map(Path, sys.path) if place.is_dir()]
    key = tuple((place, place.stat().st_mtime_ns) for place in places)
    return _offered(key).select(**wanted)


metadata.entry_points = _entry_points_read_once


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch):
    """Remove variables of launchers, and close the session that a test left open."""
    for name in [name for name in os.environ if name.startswith(_LAUNCHERS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RLPROF_QUIET", "1")
    monkeypatch.setattr(plugins, "_registered", {})
    monkeypatch.setattr(_pauses, "_LEAST_NS", 10**12)  # no spans of the tests' own garbage
    yield
    if _current.session is not None:
        _current.session.close()


@pytest.fixture(name="calls")
def _calls():
    """Register the fake tools; yield the list of their calls."""
    tools.register()
    tools.calls.clear()
    tools.gate.clear()
    yield tools.calls
    tools.gate.set()


@pytest.fixture(name="config")
def _config(calls, tmp_path):
    """Return a function that makes a config: all steps of one actor, recorded by `fake`."""

    def make(**changes):
        options = changes.pop("options", {})
        base = {
            "run_dir": str(tmp_path / "runs"),
            "scratch_dir": str(tmp_path / "scratch"),
            "tool": "fake",
            "steps": {"every": 1},
            "roles": {"actor": {}},
            "tools": {"fake": options} if options else {},
        }
        return base | changes

    return make
