"""Times of a chrome-trace: microseconds with three decimals, so no nanosecond is lost."""

from __future__ import annotations


def micros(nanoseconds: int) -> str:
    """Write nanoseconds as microseconds, exactly."""
    if nanoseconds < 0:
        return f"-{micros(-nanoseconds)}"
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"
