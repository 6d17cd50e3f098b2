"""What core itself takes to open and close a window: frames, calls, modules, CPU time.

`.envs/test/bin/python bench/windows.py [CHECKOUT]`: with another checkout of rlprof, the
cores of both are measured in turns, and the ratios are printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from _measure import machine, ratio, verdict

HERE = Path(__file__).parent
ROUNDS = 5
LIMITS = {"modules": 35, "lines": 4500, "frames": 7, "calls": 70}


def main() -> int:
    """Measure in turns, and compare."""
    checkouts = [HERE.parent, *map(Path, sys.argv[1:2])]
    print(f"windows of two tools: {machine()}")
    rounds = [[_measured(one) for one in checkouts] for _ in range(ROUNDS)]
    holds = [
        verdict(name, median(one[0][name] for one in rounds), limit, "")
        for name, limit in LIMITS.items()
    ]
    for name in ("calls to close", "open_ms", "close_ms"):
        print(f"  {name:<58} {median(one[0][name] for one in rounds):>9.3g}")
    if len(checkouts) > 1:
        for name in ("open_ms", "close_ms"):
            ours, theirs = ([one[place][name] for one in rounds] for place in (0, 1))
            print(f"  {name} of {checkouts[1]}: {median(theirs):.3g}")
            limit = 2 / 3 if name == "open_ms" else 1.0
            holds.append(verdict(f"{name}, ours / theirs", ratio(ours, theirs), limit, "x"))
        before = rounds[0][1]
        print("  before: " + ", ".join(f"{name} {before[name]}" for name in LIMITS))
    return 0 if all(holds) else 1


def _measured(checkout: Path) -> dict[str, Any]:
    env = os.environ | {"PYTHONPATH": str(checkout / "core/src"), "RLPROF_QUIET": "1"}
    command = [sys.executable, str(HERE / "_one_window.py")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
