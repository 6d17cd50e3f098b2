"""Figure 12: device seconds without work, by the phase that the leading process was in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from rlprof_report._figures.intervals import Interval, clipped, covered, merged, without
from rlprof_report._figures.path import BETWEEN
from rlprof_report.values.step import Bubble

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._figures.phases import Piece
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans.recorded import Recorded

Busy = dict[int, list[Interval]]
"""When each process was at work in a step, by its place."""


def holders_of(recorded: Recorded) -> Counter[tuple[int, ...]]:
    """Count devices by the processes that share them; empty: no process names any."""
    held: dict[str, list[int]] = {}
    for place, process in enumerate(recorded.processes):
        for device in process.devices:
            held.setdefault(device, []).append(place)
    return Counter(tuple(places) for places in held.values())


def busy_of(recorded: Recorded, timeline: Timeline) -> list[Busy]:
    """Return when each process was in a phase, and each replica served a request.

    Work that runs on into the next step keeps its devices busy there, too.
    """
    busy: list[Busy] = [{} for _ in range(len(timeline))]
    rows = recorded.phases[~recorded.phases["nested"]]
    requests = recorded.parts[recorded.parts["name"] == recorded.words.number("request")]
    by_word = np.full(len(recorded.words.words) + 1, -1, dtype=np.int64)
    for place, process in enumerate(recorded.processes):
        if process.target.replica is not None:
            number = recorded.words.number(process.target.replica)
            if number < len(by_word) - 1:
                by_word[number] = place
    for table, places in ((rows, rows["process"]), (requests, by_word[requests["replica"]])):
        first = np.searchsorted(timeline.ends, table["start"], side="right")
        after = np.searchsorted(timeline.starts, table["end"], side="left")
        columns = (one.tolist() for one in (first, after, places, table["start"], table["end"]))
        for begin, until, place, start, end in zip(*columns, strict=True):
            for step in range(begin, until) if place >= 0 else ():
                busy[step].setdefault(place, []).append((start, end))
    return busy


def bubbles_of(
    recorded: Recorded,
    holders: Counter[tuple[int, ...]],
    busy: Busy,
    pieces: Sequence[Piece],
    bounds: Interval,
) -> Iterator[Bubble]:
    """Add up idle device seconds by role and by the phase of the leading process at that time."""
    going_on = _going_on(pieces)
    found: Counter[tuple[str, str]] = Counter()
    for places, count in holders.items():
        works = merged(clipped([one for p in places for one in busy.get(p, ())], *bounds))
        role = recorded.processes[places[0]].target.role
        idle_ns, named_ns = bounds[1] - bounds[0] - covered(works), 0
        for name, own in going_on.items():
            own_ns = without(own, works)
            found[role, name] += own_ns * count
            named_ns += own_ns
        found[role, BETWEEN] += (idle_ns - named_ns) * count
    for (role, cause), ns in found.most_common():
        if ns > 0:
            yield Bubble(role, cause, ns / 1e9)


def _going_on(pieces: Sequence[Piece]) -> dict[str, list[Interval]]:
    """Return when each phase ran; times of several phases count under their joint name."""
    edges = [(piece.start, 1, piece.name) for piece in pieces]
    edges += [(piece.end, -1, piece.name) for piece in pieces]
    found: dict[str, list[Interval]] = {}
    active: Counter[str] = Counter()
    before = 0
    for at, change, name in sorted(edges):
        if active and at > before:
            found.setdefault(" and ".join(sorted(active)), []).append((before, at))
        before = at
        active[name] += change
        if not active[name]:
            del active[name]
    return found
