"""Fixtures for the real Nsight Systems; `drive` has the functions."""

from functools import cache

import pytest

from tests.nsys_real.drive import result, train
from tests.real_nsys import real_nsys


@pytest.fixture(scope="session", name="nsys")
def _nsys():
    """Return the path of the program that `make env-nsys` has unpacked."""
    return real_nsys()


@pytest.fixture(scope="session", name="alone")
def _alone(tmp_path_factory):
    """Return a function that gives the weights of training without rlprof, by steps."""

    @cache
    def learn(steps):
        home = tmp_path_factory.mktemp("alone") / "home"
        train("nsys", home, wrapped=False, steps=steps, record=False)
        return result(home)["weights"]

    return learn
