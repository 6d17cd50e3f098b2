"""Any bytes are read or refused (`RLPROF_FUZZ` sets how many); earlier finds stay fixed."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import kineto

ASKED = os.environ.get("RLPROF_FUZZ")
FOUND = sorted((Path(__file__).parent / "found").glob("*.bin"))
NUMBERS = (b"0", b"-1", b"1e400", b"-0.0", b"1e-9", b"NaN", b"9" * 5000, b"9223372036854775807")


@st.composite
def changed(draw):
    """Draw a seed with one to four changes: bytes cut, repeated, taken from another, put in."""
    data = draw(st.sampled_from(kineto.SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        part = data[start : start + draw(st.sampled_from((0, 0, 1, 4, 16, 256)))]
        other = draw(st.sampled_from(kineto.SEEDS))
        at = draw(st.integers(0, len(other)))
        new = draw(
            st.sampled_from((*kineto.TOKENS, *NUMBERS, b"", part * 2, part * 40))
            | st.binary(max_size=4)
            | st.just(other[at : at + 64])
        )
        data = data[:start] + new + data[start + len(part) :]
    return data[:20_000]


@pytest.fixture(name="folder")
def _folder(tmp_path, caplog):
    caplog.set_level("CRITICAL", "rlprof")
    return tmp_path


@pytest.mark.slow
@settings(
    max_examples=int(ASKED or 200), derandomize=not ASKED, deadline=20_000,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(data=st.data())
def test_any_bytes_are_repaired_or_refused(folder, data):
    """The parser repairs any bytes, or refuses them with a plain message, within 20 s."""
    assert kineto.check(data.draw(changed()), folder) is None


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.name)
def test_earlier_finds_stay_fixed(file, folder):
    """An input that once broke the parser is repaired or refused."""
    assert kineto.check(file.read_bytes(), folder) is None
