"""The clock of one host against another's: a line through the ends of their collectives.

Separate from `clocks.py`, which knows the hosts, because this is arithmetic alone.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    Key = tuple[Hashable, str, int]
    """Window, name, and which one of that name."""
    Times = dict[Key, tuple[int, int]]
    """Begin and end of each collective on one host."""

FEW = 8
"""Collectives that two hosts must share before anything is claimed of their clocks."""
_WIRE_NS = 1_000_000
"""A delay of network or thread that recurs each time, so that no spread shows it."""
_SPREADS = 3
_STEEPEST = 500e-6
"""NTP slews a clock by at most this; a steeper line is not drift."""
_KNOTS = 64
"""Windows that are looked at to fit a drift; of more, as many spread over all."""


@attrs.frozen
class Line:
    """How far a clock is ahead: given at some times, a drift before and after them."""

    at_ns: tuple[int, ...]
    ahead_ns: tuple[int, ...]
    drift: float

    def ahead(self, at_ns: int) -> int:
        """Return how far the clock is ahead when it shows *at_ns*."""
        place = bisect_right(self.at_ns, at_ns)
        if place in (0, len(self.at_ns)):
            nearest = min(place, len(self.at_ns) - 1)
            return self.ahead_ns[nearest] + round(self.drift * (at_ns - self.at_ns[nearest]))
        (begin, end), (low, high) = (
            values[place - 1 : place + 1] for values in (self.at_ns, self.ahead_ns)
        )
        return low + (high - low) * (at_ns - begin) // (end - begin)


@attrs.frozen
class Fit:
    """The offset of the clocks of two hosts, from their shared collectives."""

    line: Line
    windows: int
    collectives: int
    ahead_ns: int
    largest_ns: int
    spread_ns: int
    bound_ns: int


def fit(own: Times, other: Times) -> Fit | None:
    """Fit the simplest line that agrees with all windows to within the spread of collectives."""
    import numpy as np

    shared = sorted((key for key in own if key in other), key=lambda key: own[key][1])
    if len(shared) < FEW:
        return None
    mine = np.array([own[key] for key in shared], dtype=np.int64)
    theirs = np.array([other[key] for key in shared], dtype=np.int64)
    first = int(mine[0, 1])  # a double holds no epoch ns
    base = int(mine[0, 1] - theirs[0, 1])
    at, ahead = mine[:, 1] - first, mine[:, 1] - theirs[:, 1] - base
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(shared):
        places.setdefault(key[0], []).append(place)
    knots = sorted(
        (int(np.median(at[which])), int(np.median(ahead[which]))) for which in places.values()
    )
    inside = np.concatenate([ahead[which] - np.median(ahead[which]) for which in places.values()])
    line = _line(knots, int(np.median(ahead)), _within(inside))
    beyond = np.minimum(at - line.at_ns[0], 0) + np.maximum(at - line.at_ns[-1], 0)
    fitted = np.interp(at, line.at_ns, line.ahead_ns) + line.drift * beyond
    fitted = np.rint(fitted).astype(np.int64)
    spread = _within(ahead - fitted)
    # No collective ends anywhere before it has begun everywhere.
    begun = base + fitted
    causal = max(
        abs(int((mine[:, 0] - theirs[:, 1] - begun).max())),
        abs(int((mine[:, 1] - theirs[:, 0] - begun).min())),
    )
    half = max(int(np.ptp(at[which])) for which in places.values()) // 2
    bound = min(max(_SPREADS * spread, _WIRE_NS), max(causal, spread))
    line = Line(
        tuple(first + one for one in line.at_ns),
        tuple(base + one for one in line.ahead_ns),
        line.drift,
    )
    seen = [line.ahead(first + one) for one, _ in knots]
    return Fit(
        line, len(places), len(shared), base + int(np.median(ahead)), max(seen, key=abs), spread,
        bound + round(abs(line.drift) * half),  # a trace is moved as a whole
    )  # fmt: skip


def _within(values: Any) -> int:
    """Return the bound that nine in ten are within; at least a microsecond, the unit of times."""
    import numpy as np

    return max(1_000, int(np.percentile(np.abs(values), 90)))


def _line(knots: Sequence[tuple[int, int]], middle: int, spread: int) -> Line:
    """Choose between no drift, an even one, and one that changes from window to window."""
    constant = Line((knots[0][0],), (middle,), 0.0)
    if _agrees(constant, knots, spread):
        return constant
    few = knots[:: -(-len(knots) // _KNOTS)]
    slopes = sorted((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(few, 2) if x1 < x2)
    if not slopes:
        return constant
    drift = slopes[len(slopes) // 2]
    if abs(drift) > _STEEPEST:
        return constant
    first, last = knots[0][0], knots[-1][0]
    rests = sorted(y - round(drift * (x - first)) for x, y in knots)
    begin = rests[len(rests) // 2]
    through = round(drift * (last - first))
    if abs(through) <= max(_SPREADS * spread, _WIRE_NS):
        drift = 0.0  # too little to say how it went on before and after
    even = Line((first, last), (begin, begin + through), drift)
    if _agrees(even, knots, spread):
        return even
    steps = list(dict(knots).items())
    is_steep = any(
        abs(y2 - y1) > _STEEPEST * (x2 - x1) + 2 * spread for (x1, y1), (x2, y2) in pairwise(steps)
    )
    at, ahead = zip(*steps, strict=True)
    return constant if is_steep else Line(at, ahead, drift)


def _agrees(line: Line, knots: Iterable[tuple[int, int]], spread: int) -> bool:
    return all(abs(line.ahead(at) - ahead) <= spread for at, ahead in knots)
