"""A thin torch_npu in the place of the real one, and windows on it."""

from __future__ import annotations

import attrs
import pytest

from rlprof import Capture, Target, Window
from rlprof_npu import Npu, _export
from rlprof_npu._options import NpuOptions
from tests.fakes.torch_npu import FakeNpu, analysed

WINDOW, TARGET = Window(7, 8, "update_actor"), Target("actor", 3, 8)


@pytest.fixture(name="library")
def _library(monkeypatch):
    """Install it, with an analysis that leaves what the real one does."""
    fake = FakeNpu()
    fake.install(monkeypatch)
    monkeypatch.setattr(_export, "analyse", analysed)
    return fake


@attrs.frozen
class Home:
    raw: object
    out: object

    def start(self, options=None):
        """Return a tool that has begun a window, and its recording."""
        tool = Npu()
        tool.configure("process", options or NpuOptions())
        return tool, tool.start(WINDOW, TARGET, self.raw)

    def record(self, options=None):
        tool, recording = self.start(options)
        tool.stop()
        return recording

    def export(self):
        return Npu().export(Capture("run", TARGET, WINDOW, "npu", "vm", 1), self.raw, self.out)


@pytest.fixture(name="home")
def _home(tmp_path):
    made = Home(tmp_path / "raw", tmp_path / "out")
    made.raw.mkdir()
    made.out.mkdir()
    return made
