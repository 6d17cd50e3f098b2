"""The real Nsight Systems of `make env-nsys`, and traces of its reports."""

from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / ".envs/nsys/bin/nsys"


def real_nsys():
    """Return the path of the program, or skip the test."""
    if not PROGRAM.exists():
        pytest.skip(f"no {PROGRAM.relative_to(PROGRAM.parents[3])} here; run `make env-nsys`")
    return str(PROGRAM)


def ranges_of(trace):
    """Return the ranges of rlprof in a trace of the tool."""
    return [
        event
        for event in trace["traceEvents"]
        if event.get("cat") == "nvtx" and event["args"].get("domain") == "rlprof"
    ]
