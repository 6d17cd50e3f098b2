"""Numbers of steps and ranks, written as ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def ranges_of(numbers: Iterable[int]) -> list[str]:
    """Write *numbers* as ranges: `1-5`, `7`."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges]
