"""Whatever is given as a config: a Config, or one ConfigError that names every fault."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rlprof.config import check_config
from rlprof.errors import ConfigError
from tests.fakes import tools
from tests.properties.fault_lines import misformed
from tests.properties.planting import WRONG, WRONG_OPTIONS, Plant, as_yaml, planted, plants

pytestmark = pytest.mark.slow

PLANTS = plants()


def error_of(config) -> ConfigError:
    """Return the one error of *config*, whose plugins are the fake ones."""
    tools.register()
    with pytest.raises(ConfigError) as caught:
        check_config(config)
    return caught.value


@pytest.mark.parametrize("path", sorted({**WRONG, **WRONG_OPTIONS}))
def test_every_wrong_value_of_every_key_is_one_fault(path):
    """Alone, a value of another type or out of bounds is told once, under the path of its key."""
    for value in {**WRONG, **WRONG_OPTIONS}[path]:
        error = error_of(planted([Plant(path, value)]))

        (fault,) = error.faults
        where, _, words = fault.removeprefix("config: ").partition(": ")
        assert where.partition("[")[0] == path, fault
        assert words
        assert misformed(error) == []


@st.composite
def several(draw) -> list[Plant]:
    """Draw faults that do not hide each other, no two in one place."""
    drawn = draw(st.lists(st.sampled_from(PLANTS), min_size=1, max_size=9))
    chosen: list[Plant] = []
    for plant in drawn:
        if not any(plant.hides(other) or other.hides(plant) for other in chosen):
            chosen.append(plant)
    assume(len({plant.path for plant in chosen}) == len(chosen))
    return chosen


@pytest.fixture(scope="module", name="file")
def _file(tmp_path_factory):
    """A file that is written again and again."""
    return tmp_path_factory.mktemp("yaml") / "profile.yaml"


@settings(max_examples=120, deadline=None)
@given(several(), st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_all_planted_faults_of_a_file_are_told_with_their_lines(file, chosen, gaps):
    """However many there are, each stands under the line its key was written on, in order."""
    text, where = as_yaml(planted(chosen), gaps)
    file.write_text(text)

    error = error_of(file)

    expected = sorted((where[plant.path], plant.path) for plant in chosen)
    told = [fault.removeprefix(f"{file}:").split(": ", 2)[:2] for fault in error.faults]
    assert expected == [(int(line), path.partition("[")[0]) for line, path in told]
    assert misformed(error) == []
