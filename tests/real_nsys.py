"""The real Nsight Systems that `make env-nsys` unpacks, and what the tool makes of its reports."""

from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / ".envs/nsys/bin/nsys"


def real_nsys():
    """Return the path of the program; skip where it is not."""
    if not PROGRAM.exists():
        pytest.skip(f"no {PROGRAM.relative_to(PROGRAM.parents[3])} here; run `make env-nsys`")
    return str(PROGRAM)


def ranges_of(trace):
    """Return the ranges that rlprof has pushed, of a trace that the tool has made."""
    return [
        event
        for event in trace["traceEvents"]
        if event.get("cat") == "nvtx" and event["args"].get("domain") == "rlprof"
    ]
