"""Section 6: the ranks, as heat maps by phase, and how long they wait in the slow step."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING

from rlprof_report._page._table import caption, figure, section, step_window, tabled
from rlprof_report._page._text import NONE, escaped, median, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report.values import Analysis, RankTable
    from rlprof_report.values.step import Step

_WIDE = 800
"""Columns of a heat map; of more steps, each column is the slowest of several."""
_LEAST = 0.01
"""The share of a median step below which a phase has no heat map."""
_FASTER, _SLOWER = (68, 119, 170), (213, 94, 0)
"""Blue and orange, which also the colour-blind tell apart."""
_HALF = 60
"""Shades on each side of the middle."""


def ranks(analysis: Analysis, chosen: Sequence[Step]) -> str:
    """Return the section."""
    large = [one for one in analysis.ranks if len(one.ranks) > 1 and _is_large(analysis, one)]
    return section("ranks", "Ranks", "".join((*map(_map, large), *map(_waits, chosen[:1]))))


def _is_large(analysis: Analysis, one: RankTable) -> bool:
    """Whether some rank spends a hundredth of a step there: differences of less are noise."""
    most = max((value or 0.0 for row in one.seconds for value in row), default=0.0)
    return most >= _LEAST * (analysis.clean.median_s or 0.0)


def _map(one: RankTable) -> str:
    if not one.seconds or not one.steps:
        return ""
    columns = [_over_median(column) for column in zip(*one.seconds, strict=True)]
    each = -(-len(columns) // _WIDE)
    columns = [_slowest(columns[at : at + each]) for at in range(0, len(columns), each)]
    sizes = sorted(abs(value) for column in columns for value in column if value is not None)
    if not sizes:
        return ""
    scale = max(0.05, sizes[int((len(sizes) - 1) * 0.99)])
    rows = [
        [None if value is None else value / scale for value in row]
        for row in zip(*columns, strict=True)
    ]
    name = f"{one.phase} of {one.role}"
    tall = min(320, max(40, len(one.ranks) * 14))
    first, last = one.steps[0], one.steps[-1]
    words = f"{len(one.ranks):,} ranks down, steps {first} to {last} across"
    picture = (
        f"<h3>{escaped(name, 120)}</h3>"
        f'<div class="heat"><div class="y"><span>rank {one.ranks[0]}</span>'
        f"<span>rank {one.ranks[-1]}</span></div>"
        f'<img style="height:{tall}px" src="{heat(rows)}" '
        f'alt="{escaped(f"Heat map of {name}: {words}; {_worst(one)}", 300)}">'
        f'<div class="x"><span>step {first}</span><span>step {last}</span></div></div>'
        f'<p class="legend ramp"><span>{percent(-scale)}</span><i></i><span>like the median rank'
        f'</span><i class="slow"></i><span>+{percent(scale)}</span></p>'
        f"<p>{escaped(_worst(one))}</p>"
    )
    more = f"Each column is the slowest of {each} steps" if each > 1 else ""
    return figure(picture, caption((2,), words, more))


def _over_median(column: Sequence[float | None]) -> list[float | None]:
    middle = median(value for value in column if value is not None)
    if not middle:
        return [None] * len(column)
    return [None if value is None else value / middle - 1.0 for value in column]


def _slowest(columns: Sequence[Sequence[float | None]]) -> list[float | None]:
    return [
        max((value for value in row if value is not None), default=None)
        for row in zip(*columns, strict=True)
    ]


def _worst(one: RankTable) -> str:
    often: dict[int, int] = {}
    for column in zip(*one.seconds, strict=True):
        known = [(value, rank) for value, rank in zip(column, one.ranks, strict=True) if value]
        if len(known) > 1:
            slowest = max(known)[1]
            often[slowest] = often.get(slowest, 0) + 1
    if not often:
        return "no step has two ranks to compare"
    rank, times = max(often.items(), key=lambda pair: pair[1])
    if list(often.values()).count(times) > 1:
        return "no rank is the slowest more often than all others"
    return f"rank {rank} is the slowest most often, in {times} of {len(one.steps)} steps"


def _waits(step: Step) -> str:
    rows = [
        (
            escaped(f"{one.role}: {one.phase}", 120),
            f"{one.ranks:,}",
            seconds(one.median_s),
            seconds(one.max_s),
            f"{one.slowest}",
            NONE if one.meets else seconds(one.wait_s),
            NONE if one.meets else seconds(one.waste_s),
        )
        for one in step.ranks
        if one.ranks > 1
    ]
    heads = ("phase", "ranks", "median", "slowest", "which", "max less median", "max less mean")
    more = "Without a wait: the ranks meet inside, so no rank's time says who is late"
    more = more if any(one.meets for one in step.ranks) else ""
    return tabled(heads, rows, (2,), step_window(step), more=more)


def heat(rows: Sequence[Sequence[float | None]]) -> str:
    """Return values from -1 (faster) over 0 to 1 (slower) as a `data:` address of a PNG.

    Colours are clear by degrees, so that the picture is right on white and on black.
    """
    palette = b"\0\0\0"
    clear = b"\0"
    for at in range(-_HALF, _HALF + 1):
        palette += bytes(_SLOWER if at > 0 else _FASTER)
        clear += bytes([12 + round(243 * abs(at) / _HALF)])
    raw = b"".join(b"\0" + bytes(_index(value) for value in row) for row in rows)
    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)
    data = (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", size) + _chunk(b"PLTE", palette)
        + _chunk(b"tRNS", clear) + _chunk(b"IDAT", zlib.compress(raw, 9)) + _chunk(b"IEND", b"")
    )  # fmt: skip
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def _index(value: float | None) -> int:
    return 0 if value is None else 1 + _HALF + round(min(1.0, max(-1.0, value)) * _HALF)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
