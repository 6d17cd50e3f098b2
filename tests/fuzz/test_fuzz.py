"""The fuzzers work, and what they have found stays mended."""

from __future__ import annotations

import pytest

from tests.fuzz._loop import fails, found, fuzz
from tests.fuzz.parsers import NAMES, parser_named


@pytest.fixture(name="folder")
def _folder(tmp_path, caplog):
    """A scratch folder; what is logged of broken inputs is no news."""
    caplog.set_level("CRITICAL", "rlprof")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_fuzzer_finds_nothing_in_a_second(name, folder):
    """Each fuzzer runs, from the same seed each time, and what must hold holds."""
    result = fuzz(parser_named(name), folder, seconds=1, seed=3)

    assert result.error == ""
    assert result.outcomes
    assert result.reached


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param(name, data, id=file)
        for name in NAMES
        for file, data in found(parser_named(name)).items()
    ],
)
def test_what_was_found_stays_mended(name, data, folder):
    """An input that once broke something breaks nothing any more."""
    assert fails(parser_named(name), data, folder) == ""
