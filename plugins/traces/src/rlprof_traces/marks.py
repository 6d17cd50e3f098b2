"""Ranges that a tool writes into a trace: phases by a safe name, and marks that prove its clock.

A mark is a range called `rlprof.clock`, recorded with the wall clock read before and after it.
"""

from __future__ import annotations

import re

CLOCK_MARK = "rlprof.clock"
OVERLAP = 4096
"""Bytes of a mark at most: what to keep of a block to find a mark that continues in the next."""

_UNSAID = str.maketrans({'"': "'", "\\": "/"})
_US = rb'"?(\d{1,19})(?:\.(\d{1,9}))?'
_MARK = re.compile(
    rb'"name":\s*"rlprof\.clock"[^{}]*?"ts":\s*' + _US + rb'"?[^{}]*?"dur":\s*' + _US
)


def range_name(name: str) -> str:
    """Make *name* safe for Kineto and CANN, which do not escape a quote: the file is invalid then.

    Kineto also turns what is not ASCII into "unknown"; here those characters become '?' one by one.
    """
    text = name.translate(_UNSAID).encode("ascii", "replace").decode("ascii")
    return "".join(c if c.isprintable() else " " for c in text)[:200].strip() or "unnamed"


def marks_in(text: bytes) -> set[tuple[int, int]]:
    """Return start and duration in ns of the marks in *text*."""
    return {
        (exact_ns(found[1], found[2]), exact_ns(found[3], found[4]))
        for found in _MARK.finditer(text)
    }


def exact_ns(whole_us: bytes, decimals: bytes | None) -> int:
    """Turn microseconds, written with decimals, into ns: a float of epoch us is 0.25 us coarse."""
    return int(whole_us) * 1000 + int(((decimals or b"") + b"000")[:3])
