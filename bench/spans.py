"""What being always on costs: CPU time a span for the whole process, and a driver's step.

`.envs/test/bin/python bench/spans.py`

Whole process: the helper threads write spans and counters and make the figures meanwhile.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

from _measure import machine, nanoseconds, verdict

import rlprof

STEPS, TRAJECTORIES = 20, 512
SPANS = 8
"""Of each trajectory."""


def opened(folder: str) -> rlprof.Session:
    """Open a session that is always on."""
    session = rlprof.open({"tool": "none", "run_dir": folder})
    if not isinstance(session, rlprof.Session):
        raise SystemExit("rlprof is off here; its log says why")
    return session


def agent(number: int) -> None:
    """Go through what one sample of an agent loop goes through."""
    with rlprof.trajectory(number) as path:
        for turn in range(2):
            with path.turn(turn):
                with path.request({"tokens": 100, "replica": number % 4}):
                    pass
                with path.tool_call("search"):
                    pass
        with path.reward():
            pass


def steps_s(prof: rlprof.Session) -> float:
    """Return the CPU seconds of a step of two phases, what the helper thread writes included."""
    count = 3_000
    began = time.process_time()
    for _ in prof.steps(range(count)):
        with prof.phase("rollout"):
            pass
        with prof.phase("update"):
            pass
    prof.scribe.flush()
    return (time.process_time() - began) / count


def spans_s(folder: str) -> float:
    """Return the CPU seconds of a span, from the opening of the session to its end."""
    began = time.process_time()
    with opened(folder) as prof:
        for _ in prof.steps(range(STEPS)):
            with prof.phase("rollout"):
                for number in range(TRAJECTORIES):
                    agent(number)
            prof.scribe.flush()  # else the last ones would be written when it closes
    return (time.process_time() - began) / (STEPS * TRAJECTORIES * SPANS)


def main() -> int:
    """Print each figure with its limit."""
    os.environ.pop("RLPROF_CONFIG", None)
    with tempfile.TemporaryDirectory() as folder:
        least = min(spans_s(folder) for _ in range(7))
        with opened(folder) as prof:
            step = min(steps_s(prof) for _ in range(15))
            asking = nanoseconds(prof.figures, 2_000, 15)
    print(f"always on: {machine()}")
    holds = [
        verdict("a span, CPU of the whole process", least * 1e6, 10, "us"),
        verdict("a step of two phases, CPU of the whole process", step * 1e6, 20, "us"),
        verdict("prof.figures()", asking / 1000, 5, "us"),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
