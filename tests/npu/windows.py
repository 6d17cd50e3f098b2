"""Windows on a thin torch_npu: recorded, and exported."""

from __future__ import annotations

from rlprof import Capture, Target, Window
from rlprof_npu import Npu
from rlprof_npu._options import NpuOptions

WINDOW, TARGET = Window(7, 8, "update_actor"), Target("actor", 3, 8)
CAPTURE = Capture("run", TARGET, WINDOW, "npu", "vm", 1)


def started(options=None):
    """Return a tool that has begun."""
    tool = Npu()
    tool.configure("process", options or NpuOptions())
    return tool


def recorded(tmp_path):
    """Record a window; return where its raw data are, and where its files will be."""
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    out.mkdir()
    tool = started()
    tool.start(WINDOW, TARGET, raw)
    tool.stop()
    return raw, out


def exported(tmp_path):
    """Record a window, and export it."""
    raw, out = recorded(tmp_path)
    return Npu().export(CAPTURE, raw, out), out
