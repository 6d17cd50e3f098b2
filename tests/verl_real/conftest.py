"""The loop of examples/verl, trained once by each way that several tests look at."""

from __future__ import annotations

import pytest

from tests.verl_real.training import train

STEPS = 3


@pytest.fixture(name="recorded", scope="session")
def _recorded(tmp_path_factory):
    """Record step 2 of a loop, by four keys of verl's and the tool."""
    return train("recorded", tmp_path_factory.mktemp("recorded"), STEPS)
