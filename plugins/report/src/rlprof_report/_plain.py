"""Names and numbers on one line of text, as the terminal and the page show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def plain(text: str, longest: int | None = None) -> str:
    """Keep *text* on its line and within *longest* characters, whatever is in it."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return shown if longest is None or len(shown) <= longest else f"{shown[: longest - 1]}…"


def ranges_of(numbers: Iterable[int]) -> list[str]:
    """Write *numbers* as ranges: `1-5`, `7`."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges]
