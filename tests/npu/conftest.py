"""A thin torch_npu in the place of the real one."""

from __future__ import annotations

import pytest

from rlprof_npu import _export
from tests.fakes.torch_npu import FakeNpu, analysed


@pytest.fixture(name="library")
def _library(monkeypatch):
    """Install it, with an analysis that leaves what the real one does."""
    fake = FakeNpu()
    fake.install(monkeypatch)
    monkeypatch.setattr(_export, "analyse", analysed)
    return fake
