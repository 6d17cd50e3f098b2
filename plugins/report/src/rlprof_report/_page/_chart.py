"""A picture with axes: the marks stretch with the page, the words around them keep their size."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING

from rlprof_report._page._text import escaped, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 960
"""Units across, of every picture; about the pixels it has on a desk."""


Tick = tuple[float, str]
"""How far along an axis a word stands, as a share, and the word."""


def steps_up_to(high: float, most: int = 5) -> list[float]:
    """Return round numbers from 0 to *high*, at most *most* above 0."""
    if high <= 0:
        return [0.0]
    raw = high / most
    unit = 10.0 ** floor(log10(raw))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= raw * 0.9999)
    return [step * at for at in range(int(high / step * 1.0001) + 1)]


def chart(
    marks: str, *, label: str, x: Sequence[Tick], y: Sequence[Tick], height: int = 220
) -> str:
    """Return *marks*, drawn on WIDTH x *height* from the top left, between two axes."""
    grid = "".join(f'<path class="grid" d="M0 {height * (1 - at):.1f}H{WIDTH}"/>' for at, _ in y)
    left = "".join(f'<span style="bottom:{at * 100:.2f}%">{escaped(text)}</span>' for at, text in y)
    below = "".join(
        f'<span {"class=end " if at > 0.97 else ""}style="left:{at * 100:.2f}%">'
        f"{escaped(text)}</span>"
        for at, text in x
    )
    return (
        f'<div class="chart"><div class="y" aria-hidden="true">{left}</div>'
        f'<svg style="height:{height}px" viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" '
        f'role="img" aria-label="{escaped(label)}">{grid}{marks}</svg>'
        f'<div class="x" aria-hidden="true">{below}</div></div>'
    )


def line(points: Iterable[tuple[float, float]], *, color: str, title: str = "") -> str:
    """Return a line through *points*, in units of the picture."""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    if not path:
        return ""
    words = f"<title>{escaped(title, 80)}</title>" if title else ""
    return f'<path class="line" stroke="{color}" d="M{path}">{words}</path>'


def strip(parts: Iterable[tuple[str, float, str]], *, label: str) -> str:
    """Return one bar across: *parts* are (colour, share, words to show when pointed at)."""
    drawn, at = [], 0.0
    for color, share, words in parts:
        if share > 0:
            drawn.append(
                f'<rect x="{at * 1000:.2f}" y="0" width="{share * 1000:.2f}" height="10" '
                f'fill="{color}"><title>{escaped(words)}</title></rect>'
            )
        at += max(0.0, share)
    return (
        f'<svg class="strip" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(label)}">{"".join(drawn)}</svg>'
    )


def keyed(color: str, name: str) -> str:
    """Return *name* behind a dot of its *color*, for a table."""
    dot = f'<i class="key" style="background:{color}"></i>'
    return f'<span class="keyed">{dot}{escaped(name, 80)}</span>'


def seconds_axis(high: float, most: int) -> list[tuple[float, str]]:
    """Return round durations up to *high*, and how an axis says them: `20 s`."""
    if high < 1:
        return [(at, seconds(at)) for at in steps_up_to(high, most)]
    return [(at, f"{at:,.10g}\u00a0s") for at in steps_up_to(high, most)]


def legend(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the key of a picture: *pairs* are (name, colour)."""
    items = "".join(
        f'<span><i style="background:{color}"></i>{escaped(name, 60)}</span>'
        for name, color in pairs
    )
    return f'<p class="legend">{items}</p>'
