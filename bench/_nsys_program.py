"""What `nsys.py` runs: what a `range` costs, bare or under the launcher, and what `windows` do.

It writes what it found, as JSON, into the file it is given; a folder next to it keeps a window of a
million ranges.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nvtx
from _measure import nanoseconds

from rlprof import Target, Window
from rlprof_nsys import Nsys

WINDOWS = 10
MILLION = 1_000_000
_TARGET = Target("actor")
_WINDOW = Window(1, 2)


def range_ns() -> float:
    """Return what one range costs: a push and a pop of the same text."""
    push, pop = nvtx.push_range, nvtx.pop_range

    def one() -> None:
        push("update", domain="rlprof", payload=1)
        pop(domain="rlprof")

    return nanoseconds(one, number=20_000, repeat=15)


def window(tool: Any, folder: Path) -> tuple[float, float]:
    """Record a window of a thousand ranges with *tool*; return seconds to start and to stop."""
    folder.mkdir()
    begin = time.perf_counter()
    tool.start(window=_WINDOW, target=_TARGET, folder=folder)
    started = time.perf_counter()
    push(1_000)
    ended = time.perf_counter()
    tool.stop()
    return started - begin, time.perf_counter() - ended


def push(ranges: int) -> None:
    for number in range(ranges):
        nvtx.push_range("update", domain="rlprof", payload=number)
        nvtx.pop_range(domain="rlprof")


class Bare:
    """nsys started and stopped by nothing but its own two commands."""

    def __init__(self, tool: Any) -> None:
        self._nsys, self._session = tool._session.program.path, tool._session.name
        self._env = {**os.environ, "TMPDIR": tool._session.program.folder}
        for name in ("LD_PRELOAD", "NVTX_INJECTION64_PATH"):
            self._env.pop(name, None)

    def start(self, window: Window, target: Target, folder: Path) -> None:  # noqa: ARG002
        quiet = "--sample=none", "--cpuctxsw=none", "--force-overwrite=true"
        self._call("start", *quiet, f"--output={folder}/report")

    def stop(self) -> None:
        self._call("stop")

    def _call(self, verb: str, *more: str) -> None:
        argv = [self._nsys, verb, f"--session={self._session}", *more]
        subprocess.run(argv, env=self._env, check=True, capture_output=True)


def under_nsys(home: Path) -> dict[str, Any]:
    """Measure what a process that was started by the launcher does."""
    found: dict[str, Any] = {}
    tool = Nsys()
    tool.configure(place="process", target=_TARGET, options=Nsys.Options(trace=("nvtx",)))
    window(tool, home / "warm")
    for name, one in (("ours", tool), ("bare", Bare(tool))) * WINDOWS:
        count = len(found.setdefault(name, []))
        found[name].append(window(one, home / f"{name}{count}"))
    (home / "many").mkdir()
    tool.start(window=_WINDOW, target=_TARGET, folder=home / "many")
    found["collecting"] = range_ns()
    tool.stop()
    shutil.rmtree(home / "many")
    (home / "many").mkdir()
    tool.start(window=_WINDOW, target=_TARGET, folder=home / "many")
    begin = time.perf_counter()
    push(MILLION)
    found["many_s"] = time.perf_counter() - begin
    begin = time.perf_counter()
    tool.stop()
    found["many_stop_s"] = time.perf_counter() - begin
    found["after"] = range_ns()
    return found


if __name__ == "__main__":
    file = Path(sys.argv[1])
    found = under_nsys(file.parent) if sys.argv[2] == "windows" else {"range": range_ns()}
    file.write_text(json.dumps(found), encoding="utf-8")
