"""A run to be described, and its timeline to be read."""

import pytest

from tests.timeline.builder import RunBuilder, Written


@pytest.fixture
def run(tmp_path):
    """An empty run."""
    return RunBuilder(tmp_path / "runs")


@pytest.fixture
def write(run, tmp_path):
    """Export the run, and read what was written."""
    return lambda: Written(run.export(tmp_path / "out"))
