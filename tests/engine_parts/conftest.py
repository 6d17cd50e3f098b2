"""Marks the slow tests of the engine kit."""

import pytest

_LONG = ("importing_it_is_light", "export_runs_elsewhere", "configure_at_launch",
         "engine_that_dies", "records_whole_windows", "odd_values")  # fmt: skip
"""They start processes, or wait for an engine that is dead."""


def pytest_itemcollected(item):
    if any(name in item.name for name in _LONG):
        item.add_marker(pytest.mark.slow)
