"""The real Nsight Systems; what a window needs of it is in `drive`."""

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
    """What training learns without rlprof, for each number of steps."""

    @cache
    def learn(steps):
        home = tmp_path_factory.mktemp("alone") / "home"
        train("nsys", home, wrapped=False, steps=steps, record=False)
        return result(home)["weights"]

    return learn
