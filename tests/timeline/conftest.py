"""A run to fill, and its timeline to read."""

import pytest

from tests.timeline.builder import RunBuilder, Written


@pytest.fixture
def run(tmp_path):
    return RunBuilder(tmp_path / "runs")


@pytest.fixture
def write(run, tmp_path):
    return lambda: Written(run.export(tmp_path / "out"))
