"""Opens windows with two tools of one line each; prints what that took as JSON.

`windows.py` runs it once for each core it compares, so it uses only what all of them have.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import rlprof

WINDOWS = 60
SETTLE_S = 0.05
"""Between windows, so that the helper thread has written before the next one is timed."""
_INSIDE = str(Path(rlprof.__file__).parent)
frames: list[int] = []


class Thread:
    """A tool that is called on the working thread."""

    @rlprof.hookimpl
    def start(self) -> None:
        if not frames:
            frames.append(sum(_INSIDE in one.filename for one in traceback.extract_stack()))

    @rlprof.hookimpl
    def stop(self, folder: Path) -> None:
        (folder / "raw").touch()

    @rlprof.hookimpl
    def export(self) -> list[Any]:
        return []


class Process(Thread):
    """A tool that is called on a thread of its own."""

    runs_on = "process"

    @rlprof.hookimpl
    def start(self) -> None:
        """Start nothing."""


def main() -> None:
    """Open windows; count frames, calls, modules and lines, and time the working thread."""
    rlprof.register("tool", "one", Thread)
    rlprof.register("tool", "two", Process)
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "run_dir": f"{folder}/runs", "scratch_dir": f"{folder}/s", "tool": ["one", "two"],
            "roles": {"actor": {}}, "steps": f"1-{WINDOWS + 1}",
        }  # fmt: skip
        with _opened(config) as prof:
            prof.step(0)
            loaded = [one for name, one in sys.modules.items() if name.split(".")[0] == "rlprof"]
            lines = sum(len(Path(str(one.__file__)).read_bytes().splitlines()) for one in loaded)
            entries, exits = [], []
            for step in range(1, WINDOWS + 1):
                prof.step(step)
                time.sleep(SETTLE_S)
                phase = prof.phase("update")
                began = time.thread_time()
                phase.__enter__()
                entered = time.thread_time()
                time.sleep(SETTLE_S)
                left = time.thread_time()
                phase.__exit__(None, None, None)
                exits.append(time.thread_time() - left)
                entries.append(entered - began)
            prof.step(WINDOWS + 1)
            phase = prof.phase("update")
            calls = [_calls(phase.__enter__), _calls(lambda: phase.__exit__(None, None, None))]
    print(json.dumps({
        "modules": len(loaded), "lines": lines, "frames": frames[0], "calls": calls[0],
        "calls to close": calls[1], "open_ms": median(entries) * 1000,
        "close_ms": median(exits) * 1000,
    }))  # fmt: skip


def _opened(config: dict[str, Any]) -> Any:
    try:
        return rlprof.open({**config, "calibrate": False})  # an old core measured in the run
    except rlprof.ConfigError:
        return rlprof.open(config)


def _calls(function: Any) -> int:
    seen: Counter[str] = Counter()

    def look(frame: Any, event: str, _: object) -> None:
        seen["calls"] += event == "call" and _INSIDE in frame.f_code.co_filename

    sys.setprofile(look)
    function()
    sys.setprofile(None)
    return seen["calls"]


if __name__ == "__main__":
    main()
