"""The real Nsight Systems; what a window needs of it is in `drive`."""

from __future__ import annotations

import pytest

from tests.real_nsys import real_nsys


@pytest.fixture(scope="session", name="nsys")
def _nsys():
    """Return the path of the program that `make env-nsys` has unpacked."""
    return real_nsys()
