"""Drivers of real vLLM: each runs once, in its own process group, for many tests."""

import json
import os
import re

import attrs
import pytest

from tests import real_engines
from tests.real_engines import ROOT, opened, small_model
from tests.vllm_real.tiny import QUIET

STEP = re.compile(r"execute_(?:\d+_)?context_\d+\(.*\)_generation_\d+\(.*\)")


@attrs.frozen
class Driven(real_engines.Driven):
    """The results of a driver."""

    @property
    def has_sessions(self):
        """Whether this vLLM separates sessions and guards them, as it does since 0.32."""
        (version,) = [one["version"] for one in self.told if "version" in one]
        return tuple(map(int, version.split(".")[:2])) >= (0, 32)


@pytest.fixture(scope="session", name="model")
def _model(tmp_path_factory):
    """Build the small model in a process of its own, since transformers prints warnings."""
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session", name="drive")
def _drive(model, tmp_path_factory):
    """Return a function that runs a driver to its end, and ends all its processes."""

    def drive(name, *, env=None, prefix=(), **given):
        home = tmp_path_factory.mktemp(name)
        asked = json.dumps({"home": str(home), "model": str(model), **given})
        path = os.pathsep.join(map(str, (ROOT, ROOT / "examples/third_party_tool/src")))
        own = {"PYTHONPATH": path, "TMPDIR": str(home), "DRIVE": asked}
        module = f"tests.vllm_real.drivers.{name}"
        return real_engines.driven(Driven, module, home, QUIET | own | (env or {}), prefix)

    return drive


def trace(run, artifact):
    """Open a trace of *run*."""
    return opened(run.path / artifact.path)


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
