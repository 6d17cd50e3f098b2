"""Run folders for fuzzers, and what must hold of whatever is read from one."""

from __future__ import annotations

import contextlib
import io
import shutil
from typing import TYPE_CHECKING

import attrs

import rlprof
from rlprof.types import Window
from rlprof_cli import main
from rlprof_timeline import Timeline
from tests.timeline.builder import NOW, RunBuilder, Written

if TYPE_CHECKING:
    from pathlib import Path

ROLLOUT, UPDATE = Window(2, 3, "rollout"), Window(3, 5)
EVENTS = (
    {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python"}},
    {"ph": "X", "name": "aten::add", "pid": 7, "tid": 8, "ts": 10.5, "dur": 2.25, "args": {"n": 1}},
    {"ph": "s", "name": "ac2g", "cat": "ac2g", "id": 5, "pid": 7, "tid": 8, "ts": 11, "bp": "e"},
    {"ph": "f", "name": "ac2g", "cat": "ac2g", "id": 5, "pid": "gpu", "tid": "s 1", "ts": 12},
)


def build(folder: Path) -> tuple[Path, str]:
    """Make a run as a session leaves it; return its path and the name of its first process."""
    run = RunBuilder(folder)
    process = run.process()
    step = process.span("step", "step 2", NOW, NOW + 9_000_000, step=2)
    process.span("phase", "rollout", NOW + 1, NOW + 8_000_000, step=2, parent=step, tokens=7)
    process.span("span", "request ü", NOW + 5, NOW + 6_000, occurrence=3)
    process.trace(ROLLOUT, EVENTS, NOW)
    process.artifact(UPDATE, b"x", kind="files", tool="torch_memory")
    key = process.open(UPDATE, NOW + 10**9)
    process.tell("started", **key, seconds=0.5, applied={"cuda": True}, unsupported={"xpu": "no"})
    process.tell("closed", **key, reason="limits.window_s 9 was reached", seconds=0.1)
    process.tell("failed", **key, hook="export", error="RuntimeError: no")
    process.tell("skipped", step=9, reason="no phase")
    process.tell("dropped", spans=3)
    run.process(rank=1, host="node-b")
    return run.path, process.name


def copy(made: Path, to: Path) -> Path:
    """Copy the run *made* to *to*, once."""
    if not to.exists():
        shutil.copytree(made, to)
    return to


def use(path: Path, *, timeline: bool = True) -> str:
    """Read the run at *path*, list it, lay it on a *timeline*; say in words what it held."""
    run = rlprof.read(path)
    spans = list(run.spans())
    for item in (*run.processes, *run.captures, *run.skipped, *spans):
        attrs.asdict(item)
        str(item.target)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        code = main(["ls", "--files", str(path)])
    assert code == 0, shown.getvalue()
    odd = [line for line in shown.getvalue().split("\n") if not line.isprintable()]
    assert not odd, f"cannot be printed: {odd[0]!r}"
    states = sorted({capture.state for capture in run.captures})
    said = f"{len(run.processes)} {states} {len(spans)} {len(run.problems)}"
    if not timeline:  # it takes most of the time
        return said
    out = path / "exports"
    out.mkdir(exist_ok=True)
    (file,) = Timeline().render(run, out, {})
    written = Written(file)
    early = [event for event in written.events if float(event["ts"]) < 0]
    assert not early, f"stands before time zero: {early}"
    return f"{said} {len(written.about['left_out'])}"
