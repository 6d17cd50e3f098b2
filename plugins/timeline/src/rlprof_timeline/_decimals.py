"""Reads and writes many times in a batch at once: microseconds with three decimals.

Separate because this file converts digits with numpy, and `_kineto.py` knows where they are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

WIDEST = len("9999999999999999.999")
_READ = 12
"""Digits before the point that are read; those before them are the same in a batch."""
_ONES = 0x0101010101010101
"""A byte of one, eight times."""


def microseconds(text: Any, words: Any, at: Any, like: bytes) -> tuple[Any, Any]:
    """Read the times at *at*; return which are *like* these digits before the point, and in ns.

    *words*: the eight bytes from each byte of *text* on, as one number.
    """
    import numpy as np

    digits, first = len(like), like[:-_READ]
    point = at + digits
    last = words[point - 4]
    is_it = text[point] == ord(".")
    # The point makes way for a zero before the seven digits around it.
    last = (last & np.uint64(0xFFFFFF << 40)) | (last & np.uint64(0xFFFFFFFF)) << np.uint64(8)
    are_digits, ns = eight(last | np.uint64(ord("0")), min(digits, 4) + 3)
    is_it &= are_digits
    if digits > 4:
        are_digits, number = eight(words[point - _READ], min(digits - 4, 8))
        is_it &= are_digits
        ns += number * np.uint64(10**7)
    if first:
        known = np.uint64((1 << 8 * len(first)) - 1)
        is_it &= words[at] & known == np.uint64(int.from_bytes(first, "little"))
        ns += np.uint64(int(first) * 10 ** (_READ + 3))
    return is_it, ns.astype(np.int64)


def are_numbers(words: Any, at: Any, point: bytes, longest: int = 16) -> Any:
    """Say where digits, and *point* among them, stand before a comma or a line feed."""
    import numpy as np

    text = words[at].view(np.uint8)
    others = ((text - ord("0") < 10) | (text == ord(point))).view("<u8") ^ np.uint64(_ONES)
    ends = ((text == ord(",")) | (text == ord("\n"))).view("<u8")
    is_it = others & -others & ends != 0
    longer = np.flatnonzero(others == 0)
    if len(longer) and longest > 8:
        is_it[longer] = are_numbers(words, at[longer] + 8, point, longest - 8)
    return is_it


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


def in_microseconds(ns: Any) -> tuple[Any, int]:
    """Return each time as `WIDEST` bytes of text, spaces first; and the longest length.

    They are below 10**18.
    """
    import numpy as np

    us, rest = np.divmod(ns, 1000)
    high, low = np.divmod(us, 10**8)
    words = np.empty((len(ns), WIDEST // 4), "<u4")
    for column, number in ((0, high), (2, low)):
        first, second = np.divmod(number.astype(np.uint32), np.uint32(10**4))
        words[:, column], words[:, column + 1] = _fours()[first], _fours()[second]
    words[:, 4] = _fours()[rest]
    text = words.view(np.uint8)
    text[:, 16] = ord(".")
    shortest, longest = (len(str(one)) for one in (us.min(), us.max()))
    text[:, : 16 - longest] = ord(" ")
    for length in range(shortest, longest):
        text[us < 10**length, 16 - length - 1] = ord(" ")
    return words.view(f"V{WIDEST}")[:, 0], longest + len(".000")


@cache
def _fours() -> Any:
    """Return the four digits of each number below ten thousand, as one word."""
    import numpy as np

    return np.frombuffer("".join(f"{n:04d}" for n in range(10_000)).encode(), "<u4")
