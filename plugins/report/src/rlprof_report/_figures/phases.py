"""Figure 1: the time of a step by outermost phase, and the time in none."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._figures.intervals import merged
from rlprof_report._plain import listed
from rlprof_report.values.step import Overlap, PhaseTime

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans.recorded import Recorded
    from rlprof_report.values.step import Step

_ALL = 0.95
"""A phase that takes this share of a step takes all of it."""


@attrs.frozen
class Piece:
    """The part of an outermost phase inside a step, in ns on the clock of the run."""

    name: str
    start: int
    end: int
    tokens: int = 0
    version: str = ""
    last: str = ""
    """The role that ended it, if it is of several processes."""


def pieces_of(recorded: Recorded, timeline: Timeline) -> list[list[Piece]]:
    """Cut the outermost phases of the leading process into the steps they lie in.

    A driver without phases (`rlprof attach`) has those of its members.
    """
    found: list[list[Piece]] = [[] for _ in range(len(timeline))]
    rows = recorded.phases
    own = rows[(rows["process"] == timeline.leader) & ~rows["nested"] & ~rows["of_fleet"]]
    of_members = not len(own) and timeline.leads_fleet
    if of_members:
        own = _of_members(rows[~rows["nested"]])
    own = own[np.argsort(own["start"], kind="stable")]
    first = np.searchsorted(timeline.ends, own["start"], side="right").tolist()
    starts, ends = timeline.starts.tolist(), timeline.ends.tolist()
    words = recorded.words
    keys = ("name", "start", "end", "tokens", "version", "process")
    columns = (own[key].tolist() for key in keys)
    for at, name, start, end, tokens, version, process in zip(first, *columns, strict=True):
        place, last = at, recorded.processes[process].target.role if of_members else ""
        while place < len(starts) and starts[place] < end:
            one, other = max(start, starts[place]), min(end, ends[place])
            if other > one or start == end:
                found[place].append(Piece(words[name], one, other, tokens, words[version], last))
            place += 1
    return found


def _of_members(rows: np.ndarray) -> np.ndarray:
    """Make one phase of the phases of a name that overlap; its process is the last to end."""
    found = []
    for name in np.unique(rows["name"]).tolist():
        own = rows[rows["name"] == name]
        ended = dict(own[np.argsort(own["end"], kind="stable")][["end", "process"]].tolist())
        pieces = merged(own[["start", "end"]].tolist())
        found += [(name, start, end, ended[end]) for start, end in pieces]
    made = np.zeros(len(found), dtype=rows.dtype)
    keys = ("name", "start", "end", "process")
    for key, values in zip(keys, zip(*found, strict=True), strict=False):
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
            last=_last(own),
        )
        for name, own in by_name.items()
    )


def _last(own: Sequence[Piece]) -> str:
    """Return the role that ended most of the time of these pieces."""
    seconds: dict[str, int] = {}
    for piece in own:
        seconds[piece.last] = seconds.get(piece.last, 0) + piece.end - piece.start
    return max(seconds, key=lambda role: seconds[role])


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


def wraps_of(recorded: Recorded, timeline: Timeline, steps: Sequence[Step]) -> Iterator[str]:
    """Note a phase that takes all of most steps, and so hides the phases inside it."""
    wraps = Counter(
        one.phases[0].name
        for one in steps
        if len(one.phases) == 1 and one.phases[0].seconds >= _ALL * one.seconds
    )
    rows = recorded.phases
    inner = rows[rows["nested"] & (rows["process"] == timeline.leader)]
    name, times = next(iter(wraps.most_common(1)), ("", 0))
    if len(inner) and 2 * times > len(steps):
        names = listed([recorded.words[one] for one in dict.fromkeys(inner["name"].tolist())])
        yield f"{name} takes all of a step, which hides the phases in it ({names}): leave it out."
