"""Times of a chrome-trace: microseconds, and what nanoseconds are left behind the point."""

from __future__ import annotations


def micros(nanoseconds: int) -> str:
    """Write nanoseconds as microseconds, exactly."""
    if nanoseconds < 0:
        return f"-{micros(-nanoseconds)}"
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"
