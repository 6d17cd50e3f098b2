"""Real run folders for exporters: whole, crashed, empty, hostile, damaged; and loose files."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

import rlprof
from rlprof_testing._drive import python

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = (
    "", " ", "a/b", "../../up", 'say "hi"', "back\\slash", "new\nline", "nul\0nul", "tab\t", "%s{}",
    "<b>", "ünïcödé 火 🔥", "\ud800", "e\u0301", "x" * 5000, "rlprof", "null", "NaN", "]}",
    "\x1b[31m",
)  # fmt: skip
"""Odd names that you may give to a phase."""

KINDS = ("whole", "crashed", "empty", "bare", "hostile", "missing", "damaged")
"""`bare`: only run.json is there; `missing`: an artifact is gone; `damaged`: files are garbage."""

_CRASH = """
import json, os, signal, sys, time
import rlprof
from rlprof_testing._kit_tool import PhaseTool
rlprof.register("tool", "kit", PhaseTool)
prof = rlprof.open(json.loads(sys.argv[1]), role="actor", rank=0, world_size=2)
prof.step(1)
with prof.phase("rollout"), prof.span("request"):
    time.sleep(0.01)
end = time.monotonic() + 60
while not any(one.exported_ns for one in rlprof.read(prof.run_dir).captures):
    assert time.monotonic() < end, "the first window was not exported within 60 s"
    time.sleep(0.02)
prof.step(2)
with prof.phase("rollout"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def make_runs(home: Path) -> dict[str, Path]:
    """Make one run of each kind below *home*; a `kit` tool must be registered."""
    runs = {kind: home / kind / "run" for kind in KINDS}
    _record(home / "whole", steps=(1, 2))
    _record(home / "hostile", steps=(1,), mode="continuous", names=HOSTILE)
    _record(home / "empty", steps=(), config={"steps": "none"})
    _crash(home / "crashed")
    shutil.copytree(runs["whole"], runs["missing"])
    _traces(runs["missing"])[0].unlink()
    shutil.copytree(runs["whole"], runs["damaged"])
    _damage(runs["damaged"])
    runs["bare"].mkdir(parents=True)
    shutil.copy(runs["whole"] / "run.json", runs["bare"])
    return runs


def make_files(home: Path) -> list[Path]:
    """Write traces of other profilers, and other files found next to such traces."""
    home.mkdir(parents=True)
    events = [
        {"ph": "X", "name": name, "pid": 1, "tid": 2, "ts": 1e9 + at, "dur": 5}
        for at, name in enumerate(HOSTILE)
    ]
    trace = {"baseTimeNanoseconds": 0, "distributedInfo": {"rank": 3}, "traceEvents": events}
    text = json.dumps(trace).encode()
    for name, data in {
        "whole.json": text,
        "rank1.pt.trace.json.gz": gzip.compress(text),
        "cut.json": text[: len(text) // 2],
        "cut.json.gz": gzip.compress(text)[:-40],
        "empty.json": b"",
        "config.json": b'{"traceEvents": 7, "model": "any"}',
        "events.json": json.dumps(events).encode(),
        "garbage.gz": b"\x1f\x8bgarbage",
        "garbage.pftrace": bytes(range(256)),
    }.items():
        (home / name).write_bytes(data)
    return sorted(home.iterdir())


def _config(home: Path, **more: Any) -> dict[str, Any]:
    return {
        "run_dir": str(home / "run"),
        "scratch_dir": str(home / "scratch"),
        "tool": "kit",
        "steps": {"every": 1},
        "roles": {"actor": {}},
    } | more


def _record(
    home: Path,
    steps: tuple[int, ...],
    *,
    mode: str = "discrete",
    names: tuple[str, ...] = ("rollout", "update_actor"),
    config: dict[str, Any] | None = None,
) -> None:
    made = _config(home, mode=mode, **(config or {}))
    with rlprof.open(made, role="actor", rank=0, world_size=1) as prof:
        for _ in prof.steps(steps):
            for name in names:
                with prof.phase(name), prof.span(name, {name: name, "tokens": 7}):
                    time.sleep(0.001)
    _settle(home)


def _crash(home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    python([sys.executable, "-c", _CRASH, json.dumps(_config(home))], cwd=home)
    _settle(home)
    (manifest,) = (home / "run").glob("manifest/*.jsonl")
    with manifest.open("r+b") as file:  # its last line was being written
        file.truncate(manifest.stat().st_size - 7)


def _settle(home: Path) -> None:
    """Rename the run's folder to `run`, whatever its id is."""
    (made,) = (home / "run").iterdir()
    made.rename(home / "made")
    (home / "run").rmdir()
    (home / "made").rename(home / "run")


def _traces(run: Path) -> list[Path]:
    return sorted(run.rglob("*.trace.json.gz"))


def _damage(run: Path) -> None:
    first, second, *_ = _traces(run)
    first.write_bytes(b"\x1f\x8bgarbage")
    second.write_bytes(second.read_bytes()[:-20])
    (spans,) = run.glob("spans/*.jsonl")
    data = spans.read_bytes()
    spans.write_bytes(data[: len(data) // 2] + b"\n\xff\xfe{]\n" + b'{"kind": 7}\n[1, 2]\n')
