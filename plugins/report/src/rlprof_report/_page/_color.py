"""The colour of each phase, in every picture of a page.

The colours are Paul Tol's: people with any kind of colour blindness can tell them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof_report.values import Analysis

PALETTE = (
    "#4477aa", "#ee8866", "#44aa99", "#ddcc77", "#aa4499", "#88ccee", "#999933", "#cc6677",
    "#117733", "#bb99cc",
)  # fmt: skip
NOTHING = "#a0a0a0"
"""For time in no phase."""
OURS = "#d01c8b"
"""For the work of rlprof itself."""


def colors_of(analysis: Analysis) -> dict[str, str]:
    """Return the colour of every phase: those of the leader first, so that they differ most."""
    names: Iterable[str] = (
        *(phase.name for phase in analysis.phases),
        *(phase.name for step in analysis.steps for phase in step.phases),
        *(name for lane in analysis.lanes for name, _, _ in lane.bars),
    )
    return {name: PALETTE[at % len(PALETTE)] for at, name in enumerate(dict.fromkeys(names))}


def shade(color: str, toward: int, share: float) -> str:
    """Return *color*, mixed by *share* with a grey: 255 is white, 0 is black."""
    parts = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (toward - part) * share):02x}" for part in parts)


def ink(color: str) -> str:
    """Return black or white, depending on which can be read on *color*."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#000" if red * 0.299 + green * 0.587 + blue * 0.114 > 128 else "#fff"
