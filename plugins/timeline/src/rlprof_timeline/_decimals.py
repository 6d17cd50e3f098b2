"""Reads and writes many times in a batch at once: microseconds with three decimals.

Separate because this file converts digits with numpy, and `_inplace.py` knows where they are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

WIDEST = len("9999999999999999.999")
_ONES = 0x0101010101010101
"""A byte of one, eight times."""


def microseconds(text: Any, words: Any, at: Any, digits: int) -> tuple[Any, Any]:
    """Read the times at *at* with this many digits before the point; return which match, and in ns.

    *words*: the eight bytes from each byte of *text* on, as one number.
    """
    import numpy as np

    point = at + digits
    after = text[point + len(".000")]
    is_it = (text[point] == ord(".")) & ((after == ord(",")) | (after == ord("\n")))
    ns = np.zeros(len(at), np.uint64)
    # Three words of eight digits: to the end, to the point, and what is before that.
    for end, count, weight in (
        (point + len(".000"), 3, 1),
        (point, min(digits, 8), 1000),
        (point - 8, digits - 8, 1000 * 10**8),
    ):
        if count > 0:
            are_digits, number = eight(words[end - 8], count)
            is_it &= are_digits
            ns += number * np.uint64(weight)
    return is_it, ns.astype(np.int64)


def eight(words: Any, count: int) -> tuple[Any, Any]:
    """Read the last *count* of eight characters as a number; return also where they are digits."""
    import numpy as np

    low = (1 << 8 * (8 - count)) - 1
    words = words & np.uint64(_ONES * 0xFF ^ low) | np.uint64(_ONES * ord("0") & low)
    halves = np.uint64(_ONES * 0xF0)
    above = words + np.uint64(_ONES * 6)  # what is more than 9 is then more than 0x3F
    are_digits = (words & halves | (above & halves) >> np.uint64(4)) == np.uint64(_ONES * 0x33)
    # Digits to pairs, pairs to fours, fours to the number: the first is the lowest byte.
    words = words - np.uint64(_ONES * ord("0"))
    words = words * np.uint64(10) + (words >> np.uint64(8))
    pairs = np.uint64(0x000000FF000000FF)
    fours = (words & pairs) * np.uint64(100 + (10**6 << 32))
    fours += (words >> np.uint64(16) & pairs) * np.uint64(1 + (10**4 << 32))
    return are_digits, fours >> np.uint64(32)


def in_microseconds(ns: Any) -> tuple[Any, Any]:
    """Return each time as a row of `WIDEST` characters, padded with zeros, and its length.

    They are below 10**18.
    """
    import numpy as np

    us, rest = np.divmod(ns, 1000)
    high, low = np.divmod(us, 10**8)
    words = np.empty((len(ns), WIDEST // 4), "<u4")
    for column, number in ((0, high), (2, low)):
        first, second = np.divmod(number.astype(np.uint32), 10**4)
        words[:, column], words[:, column + 1] = _fours()[first], _fours()[second]
    words[:, 4] = _fours()[rest]
    text = words.view(np.uint8)
    text[:, 16] = ord(".")
    return text, np.searchsorted(10 ** np.arange(1, 16), us, "right") + 1 + len(".000")


@cache
def _fours() -> Any:
    """Return the four digits of each number below ten thousand, as one word."""
    import numpy as np

    return np.frombuffer("".join(f"{n:04d}" for n in range(10_000)).encode(), "<u4")
