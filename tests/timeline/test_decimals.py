"""Digits that numpy reads many at once are what Python reads one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlprof_timeline._decimals import eight, in_microseconds, microseconds

CHARACTERS = st.one_of(st.sampled_from(b"0123456789"), st.integers(0, 255))


@pytest.mark.slow
@given(text=st.lists(CHARACTERS, min_size=8, max_size=8).map(bytes), count=st.integers(1, 8))
def test_eight_characters_are_a_number_or_none(text, count) -> None:
    """Of any bytes it is said whether they are digits, and if so, which number."""
    are_digits, number = eight(np.frombuffer(text, "<u8"), count)

    own = text[8 - count :]
    assert bool(are_digits[0]) == all(byte in b"0123456789" for byte in own)
    assert not are_digits[0] or int(number[0]) == int(own)


@pytest.mark.slow
@given(times=st.lists(st.integers(0, 10**18 - 1), min_size=1))
def test_times_are_written_and_read(times) -> None:
    """To the nanosecond, whatever their number of digits."""
    text, lengths = in_microseconds(np.array(times))
    rows = [row.tobytes()[-n:] for row, n in zip(text, lengths.tolist(), strict=True)]
    assert rows == [b"%d.%03d" % divmod(ns, 1000) for ns in times]

    for row, ns in zip(rows, times, strict=True):
        batch = np.frombuffer(b" " * 24 + row + b",", np.uint8)
        words = np.ndarray((len(batch) - 7,), "<u8", batch, strides=(1,))
        is_it, read = microseconds(batch, words, np.array([24]), len(row) - 4)
        assert (is_it.tolist(), read.tolist()) == ([True], [ns])


@pytest.mark.parametrize("text", [b"12.34,", b"12.3456,", b"1234567,", b"12.3a5,", b"12.345]",
                                  b"-2.345,", b"1.2.345,", b"\xff2.345,"])  # fmt: skip
def test_what_is_no_such_time_is_seen(text) -> None:
    """Another number of decimals, a sign, an exponent: it is for the slow way."""
    batch = np.frombuffer(b" " * 24 + text + b" " * 8, np.uint8)
    words = np.ndarray((len(batch) - 7,), "<u8", batch, strides=(1,))

    for digits in range(1, 5):
        is_it, _ = microseconds(batch, words, np.array([24]), digits)

        assert not is_it[0]
