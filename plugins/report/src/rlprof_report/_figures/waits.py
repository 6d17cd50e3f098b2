"""How long ranks wait for the slowest of them: the one calculation of `why`, page and `top`."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence


@attrs.frozen
class Wait:
    """The ranks of one role in one phase of one step."""

    slowest: int
    """The place of the rank that took longest."""
    seconds: float
    """How much longer it took than the median of the others."""
    meets: bool
    """Whether all end together after different times: then they waited inside.

    A rank that comes early to a collective takes long, so no rank's time says who was late.
    """


def wait_of(seconds: Sequence[float], ends_ns: Sequence[int]) -> Wait:
    """Compare two ranks or more by the *seconds* each took, and by when each ended."""
    slowest, more = slowest_of(seconds)
    others = [end for place, end in enumerate(ends_ns) if place != slowest]
    later = (max(ends_ns) - median(others)) / 1e9
    return Wait(slowest, more, meets=more > 0 and later < more / 2)


def slowest_of(seconds: Sequence[float]) -> tuple[int, float]:
    """Return the place of the slowest of two or more, and how much it exceeds their median."""
    slowest = max(range(len(seconds)), key=seconds.__getitem__)
    return slowest, seconds[slowest] - median([*seconds[:slowest], *seconds[slowest + 1 :]])
