"""The lines of a manifest: whatever stands there is read, and no more is told than was written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import rlprof
from rlprof.rundir import known
from rlprof.types import Window
from tests.fuzz._loop import Parser
from tests.fuzz.parsers import _runs

if TYPE_CHECKING:
    from pathlib import Path

_EVENTS = (
    "process", "clock", "opened", "started", "closed", "failed", "artifact", "exported", "skipped",
    "dropped", "ended", "request", "served", "new_in_9", "_window",
)  # fmt: skip
TOKENS = (
    *(f'"event": "{name}"'.encode() for name in _EVENTS),
    b"\n", b"\0\0\0\0", b'"status":"partial"', b'"replica":1', b'"kind":"trace"', b'"path":"../x"',
)  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """The manifests of a run made in earnest, and some of their lines."""
    path, name = _runs.build(folder / "runs")
    whole = (path / "manifest" / f"{name}.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    return [whole, b"".join(lines[:3] + lines[4:8]), b"".join(lines[2:] + lines[:2])]


def check(data: bytes, folder: Path, *, thorough: bool) -> str:
    """Put them into a run folder, and read, list and export that."""
    path = _runs.copy(folder.parent / "seeds" / "runs" / "a-run", folder / "a-run")
    file = min(path.glob("manifest/*"))
    file.write_bytes(data)
    said = _runs.use(path, timeline=thorough)
    opened, artifacts = _told(data)
    for capture in rlprof.read(path).captures:
        key = (capture.window, capture.tool)
        assert key in opened, f"{key} was never opened"
        paths = {artifact.path for artifact in capture.artifacts}
        assert paths <= artifacts.get(key, set()), f"{key} never had {paths}"
        if capture.state in ("whole", "partial"):
            assert paths, f"{key} is {capture.state} and left nothing"
    return said


def _told(data: bytes) -> tuple[set[object], dict[object, set[str]]]:
    """Say which captures the lines open, and which files they give each of them."""
    opened: set[object] = set()
    artifacts: dict[object, set[str]] = {}
    for line in data.split(b"\n"):
        try:
            record = json.loads(line)
            window = known(Window, record["window"])
            numbers = int(window.start_step), int(window.end_step), int(window.occurrence)
            phase = None if window.phase is None else str(window.phase)
            key = (Window(numbers[0], numbers[1], phase, numbers[2]), str(record["tool"]))
            if record["event"] == "opened":
                opened.add(key)
            elif record["event"] == "artifact":
                artifacts.setdefault(key, set()).add(str(record["artifact"]["path"]))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            continue
    return opened, artifacts


TRACED = (
    "/rlprof_run/",
    "/rlprof/rundir/",
    "/rlprof_cli/ls",
    "/rlprof_timeline/_spans",
    "/rlprof_timeline/_time",
)
PARSER = Parser("manifest", "lines", TRACED, TOKENS, seeds, check)
