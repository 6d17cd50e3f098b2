"""Drivers of real SGLang: each runs once, in its own process group, for many tests."""

import json
import os
from pathlib import Path

import attrs
import pytest

from tests import real_engines
from tests.real_engines import ROOT, lines, opened, small_model
from tests.sglang_real.tiny import QUIET

STAND_INS = Path(__file__).parent / "stand_ins"
PLUGIN = {
    "METADATA": "Metadata-Version: 2.1\nName: a-framework\nVersion: 1\n",
    "entry_points.txt": (
        "[sglang.srt.plugins]\na-framework = tests.sglang_real.framework:register\n"
        "[rlprof.tools]\nstacks = rlprof_stacks:Stacks\n"
    ),
}


@attrs.frozen
class Driven(real_engines.Driven):
    """The results of a driver."""

    @property
    def framework(self):
        """The notes of the framework's plugin from all processes, in order within each."""
        return [one for file in sorted(self.home.glob("framework-*.jsonl")) for one in lines(file)]


@pytest.fixture(scope="session", name="model")
def _model(tmp_path_factory):
    """Build the small model in a process of its own, since transformers prints warnings."""
    return small_model(tmp_path_factory.mktemp("model"), PYTHONPATH=str(STAND_INS))


@pytest.fixture(scope="session", name="plugin")
def _plugin(tmp_path_factory):
    """Install the framework's plugin and a third-party tool into a folder for PYTHONPATH."""
    folder = tmp_path_factory.mktemp("plugin")
    info = folder / "a_framework-1.dist-info"
    info.mkdir()
    for name, text in PLUGIN.items():
        (info / name).write_text(text)
    return folder


@pytest.fixture(scope="session", name="drive")
def _drive(model, plugin, tmp_path_factory):
    """Return a function that runs a driver once, to its end, and ends all its processes."""
    found = {}

    def drive(name, *, env=None, prefix=(), **given):
        key = json.dumps([name, env, prefix, given], sort_keys=True)
        if key not in found:
            home = tmp_path_factory.mktemp(name)
            asked = json.dumps({"home": str(home), "model": str(model), **given})
            path = (STAND_INS, plugin, ROOT, ROOT / "examples/third_party_tool/src")
            own = {"PYTHONPATH": os.pathsep.join(map(str, path)), "TMPDIR": str(home)}
            module = f"tests.sglang_real.drivers.{name}"
            full = QUIET | own | {"DRIVE": asked} | (env or {})
            found[key] = real_engines.driven(Driven, module, home, full, prefix)
        return found[key]

    return drive


def steps(file):
    """Return the names of the forward steps in a trace, in order."""
    found = [
        one
        for one in opened(file)["traceEvents"]
        if one.get("ph") == "X" and one["name"].startswith("step[")
    ]
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
