"""Figure 1: the time of a step by outermost phase, and the time in none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._figures.intervals import merged
from rlprof_report.values import Overlap, PhaseTime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans import Recorded


@attrs.frozen
class Piece:
    """The part of an outermost phase inside a step, in ns on the clock of the run."""

    name: str
    start: int
    end: int
    tokens: int = 0
    version: str = ""


def pieces_of(recorded: Recorded, timeline: Timeline) -> list[list[Piece]]:
    """Cut the outermost phases of the leading process into the steps they lie in.

    A driver without phases (`rlprof attach`) has those of its members.
    """
    found: list[list[Piece]] = [[] for _ in range(len(timeline))]
    rows = recorded.phases
    own = rows[(rows["process"] == timeline.leader) & ~rows["nested"] & ~rows["of_fleet"]]
    if not len(own) and timeline.leads_fleet:
        own = _of_members(rows[~rows["nested"]])
    own = own[np.argsort(own["start"], kind="stable")]
    first = np.searchsorted(timeline.ends, own["start"], side="right").tolist()
    starts, ends = timeline.starts.tolist(), timeline.ends.tolist()
    words = recorded.words
    columns = (own[key].tolist() for key in ("name", "start", "end", "tokens", "version"))
    for at, name, start, end, tokens, version in zip(first, *columns, strict=True):
        place = at
        while place < len(starts) and starts[place] < end:
            one, other = max(start, starts[place]), min(end, ends[place])
            if other > one or start == end:
                found[place].append(Piece(words[name], one, other, tokens, words[version]))
            place += 1
    return found


def _of_members(rows: np.ndarray) -> np.ndarray:
    """Make one phase of the phases of a name that overlap, in any process."""
    found = [
        (name, start, end)
        for name in np.unique(rows["name"]).tolist()
        for start, end in merged(rows[rows["name"] == name][["start", "end"]].tolist())
    ]
    made = np.zeros(len(found), dtype=rows.dtype)
    for key, values in zip(("name", "start", "end"), zip(*found, strict=True), strict=False):
        made[key] = values
    return made


def times_of(pieces: Sequence[Piece], epoch: int) -> tuple[PhaseTime, ...]:
    """Add up the pieces of each name, in the order the names first came."""
    by_name: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_name.setdefault(piece.name, []).append(piece)
    return tuple(
        PhaseTime(
            name=name,
            seconds=sum(piece.end - piece.start for piece in own) / 1e9,
            start_s=(own[0].start - epoch) / 1e9,
            end_s=(max(piece.end for piece in own) - epoch) / 1e9,
            times=len(own),
        )
        for name, own in by_name.items()
    )


def overlaps_of(pieces: Sequence[Piece]) -> tuple[Overlap, ...]:
    """List which phases ran at once, and how long, the longest first."""
    found: dict[tuple[str, str], int] = {}
    going_on: list[Piece] = []
    for piece in pieces:  # sorted by start
        going_on = [one for one in going_on if one.end > piece.start]
        for one in going_on:
            pair = one.name, piece.name
            found[pair] = found.get(pair, 0) + min(one.end, piece.end) - piece.start
        going_on.append(piece)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return tuple(Overlap(left, right, ns / 1e9) for (left, right), ns in ordered if ns > 0)
