"""A run to be described, and its timeline to be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.timeline.builder import RunBuilder, Written


@pytest.fixture
def run(tmp_path: Path) -> RunBuilder:
    """An empty run."""
    return RunBuilder(tmp_path / "runs")


@pytest.fixture
def write(run: RunBuilder, tmp_path: Path) -> Callable[[], Written]:
    """Export the run, and read what was written."""
    return lambda: Written(run.export(tmp_path / "out"))
