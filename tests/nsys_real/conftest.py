"""The real Nsight Systems; what a window needs of it is in `drive`."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent.parent / ".envs/nsys/bin/nsys"


@pytest.fixture(scope="session", name="nsys")
def _nsys():
    """Return the path of the program that `make env-nsys` has unpacked."""
    if not PROGRAM.exists():
        pytest.skip(f"no {PROGRAM.relative_to(PROGRAM.parents[3])} here; run `make env-nsys`")
    return str(PROGRAM)
