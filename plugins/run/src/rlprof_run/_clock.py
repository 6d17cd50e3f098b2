"""The wall-clock time of a monotonic one, from the pairs of both that a process has read."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from rlprof.types import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

_DRIFT_PPM = 500
"""NTP slews a clock by at most this; a larger change was a step."""


def unbroken(pairs: Sequence[Clock]) -> tuple[list[Clock], list[int]]:
    """Shift the pairs before a step of the wall clock, as if it had always been as at the end.

    Returned with the shift of each. Else what came later could stand before what came earlier. The
    size of the step is added to the bound: which of the two times was right is not known here.
    """
    shifted: list[Clock] = []
    shifts: list[int] = []
    shift = 0
    for index in range(len(pairs) - 1, -1, -1):
        pair = pairs[index]
        if shifted and _stepped(pair, pairs[index + 1]):
            shift += _drift(pair, pairs[index + 1])
        shifted.append(
            Clock(pair.realtime_ns + shift, pair.monotonic_ns, pair.bound_ns + abs(shift))
        )
        shifts.append(shift)
    return shifted[::-1], shifts[::-1]


def _drift(left: Clock, right: Clock) -> int:
    span = right.monotonic_ns - left.monotonic_ns
    return (right.realtime_ns - left.realtime_ns) - span


def _stepped(left: Clock, right: Clock) -> bool:
    """Whether the wall clock moved by more from *left* to *right* than one is slewed."""
    slewed = (right.monotonic_ns - left.monotonic_ns) * _DRIFT_PPM // 1_000_000
    return abs(_drift(left, right)) > slewed + left.bound_ns + right.bound_ns


def clock_at(pairs: Sequence[Clock], monotonic_ns: int) -> tuple[int, int]:
    """Return the wall-clock time of *monotonic_ns* and its error bound, both in ns.

    Between two pairs the offset is interpolated (it drifts), and the bound holds as long as it
    goes one way from the one to the other; where the wall clock was stepped in between, the
    nearer pair counts. *pairs* are sorted by their monotonic time and not empty.
    """
    index = bisect_right(pairs, monotonic_ns, key=lambda pair: pair.monotonic_ns)
    if index in (0, len(pairs)):
        pair = pairs[min(index, len(pairs) - 1)]
        age = abs(monotonic_ns - pair.monotonic_ns)
        return _apply(pair, monotonic_ns), pair.bound_ns + age * _DRIFT_PPM // 1_000_000
    left, right = pairs[index - 1], pairs[index]
    span = right.monotonic_ns - left.monotonic_ns
    drift = _drift(left, right)
    bound = max(left.bound_ns, right.bound_ns)
    if _stepped(left, right):
        nearer = left if monotonic_ns - left.monotonic_ns <= span // 2 else right
        return _apply(nearer, monotonic_ns), bound + abs(drift)
    share = drift * (monotonic_ns - left.monotonic_ns) // span
    return _apply(left, monotonic_ns) + share, bound + abs(drift)


def _apply(pair: Clock, monotonic_ns: int) -> int:
    return pair.realtime_ns + monotonic_ns - pair.monotonic_ns
