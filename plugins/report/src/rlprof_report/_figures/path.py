"""Figure 9: the critical path of a step, whose parts tile it; and the phases it goes through."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from rlprof_report._figures.meetings import END, begins, times_of
from rlprof_report.values.step import PathPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report._figures.meetings import Meetings
    from rlprof_report._figures.phases import Piece
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._figures.trajectories import Trajectories
    from rlprof_report._spans.recorded import Recorded
    from rlprof_report.values.step import Ranks

BETWEEN = "between phases"
_WORTH_IT = 0.01
"""The least share of a step by which a rank is late for the path to go on with it."""
Part = tuple[str, int, int, str]
"""What, from, to, where."""


class Tracks:
    """The outermost phases of every rank, by step."""

    def __init__(self, recorded: Recorded, timeline: Timeline, meetings: Meetings) -> None:
        self._words, self._targets = recorded.words, [one.target for one in recorded.processes]
        self.leader, role = timeline.leader, self._targets[timeline.leader].role
        is_own = np.array([target.role == role for target in self._targets], dtype=bool)
        rows = recorded.phases
        rows = rows[~rows["nested"] & ~rows["of_fleet"] & is_own[rows["process"]]]
        steps = timeline.of(rows)
        rows, steps = rows[steps >= 0], steps[steps >= 0]
        order = np.lexsort((rows["start"], rows["name"], rows["process"], steps))
        rows, steps = rows[order], steps[order]
        self.has_peers = len(np.unique(rows["process"])) > 1
        self._rows = rows
        self._keys = steps * len(self._targets) + rows["process"]
        self._last = self._entered_last(steps)
        self._met = meetings.last.get(role, {})

    def of(self, step: int, process: int) -> list[tuple[str, int, int]]:
        """Return name, start and end of each phase of *process* in the step at place *step*."""
        key = step * len(self._targets) + process
        own = self._rows[np.searchsorted(self._keys, key) : np.searchsorted(self._keys, key + 1)]
        columns = (own[name].tolist() for name in ("name", "start", "end"))
        return [(self._words[name], start, end) for name, start, end in zip(*columns, strict=True)]

    def last_into(self, step: int, phase: str, times: int) -> tuple[int, int]:
        """Return when the last rank entered *phase* after *times* others of it, and which rank."""
        return self._last.get((step, self._words.number(phase), times), (0, self.leader))

    def met_before(self, step: int, phase: str, times: int) -> tuple[int, int]:
        """Return when the last rank came to where all meet before *phase*, and which rank.

        An empty *phase* is the end of the step.
        """
        number = self._words.number(phase) if phase else END
        return self._met.get((step, number, times), (0, self.leader))

    def name(self, process: int) -> str:
        """Name a rank: `trainer 2`; empty if there is only one."""
        target = self._targets[process]
        return f"{target.role} {target.rank}" if self.has_peers else ""

    def _entered_last(self, steps: np.ndarray) -> dict[tuple[int, int, int], tuple[int, int]]:
        rows = self._rows
        if not self.has_peers:
            return {}
        times = times_of(steps, rows["process"], rows["name"])
        order = np.lexsort((rows["start"], times, rows["name"], steps))
        keys = np.stack([steps, rows["name"], times])[:, order]
        is_last = np.append(begins(*keys)[1:], True)
        last = rows[order][is_last]
        return {
            (step, name, nth): (start, process)
            for (step, name, nth), start, process in zip(
                keys[:, is_last].T.tolist(),
                last["start"].tolist(),
                last["process"].tolist(),
                strict=True,
            )
        }


def path_of(
    pieces: Sequence[Piece],
    bounds: tuple[int, int],
    *,
    step: int,
    tracks: Tracks,
    ranks: Sequence[Ranks],
    found: Trajectories | None,
    epoch: int,
) -> tuple[PathPart, ...]:
    """Walk back from the end of a step, whose place is *step*, through whatever it waited for.

    Where ranks meet, in a phase or between two, all wait for the rank that comes last. From there
    on, back in time, the path is that rank's.
    """
    meeting = {one.phase for one in ranks if one.meets}
    slowest = {one.phase: one for one in sorted(ranks, key=lambda one: one.max_s)}
    least, process, until = (bounds[1] - bounds[0]) * _WORTH_IT, tracks.leader, bounds[1]
    phases = [(piece.name, piece.start, piece.end) for piece in pieces]
    counted = zip(_counted(phases), pieces, strict=True)
    ended = {(what, nth): piece.last for (what, _, _, nth), piece in counted}
    parts: list[Part] = []
    after = ("", 0)
    while until > bounds[0]:
        before, until = until, bounds[0]
        for what, start, end, nth in reversed(tiled(_counted(phases), (bounds[0], before))):
            begin, whose, where = start, process, tracks.name(process)
            if not what:
                came, last = tracks.met_before(step, *after)
                if last != process and start + least < came <= end:
                    begin, whose = came, last
            elif what in meeting:
                late, last = tracks.last_into(step, what, int(nth))
                where = ""
                if last != process and start + least < late < end:
                    begin, whose = late, last
            elif not where and what in slowest:
                where = f"{slowest[what].role} {slowest[what].slowest}"
            role = ended.get((what, nth), "")
            if not where.startswith(f"{role} "):
                where = role or where
            if found is not None and what and what == found.phase:
                parts += reversed(_inside(found, begin, end))
            else:
                parts.append((what or BETWEEN, begin, end, where))
            after = (what, int(nth)) if what else after
            if whose != process:
                process, until, phases = whose, begin, tracks.of(step, whose)
                break
    return tuple(
        PathPart(what, (start - epoch) / 1e9, (end - epoch) / 1e9, where)
        for what, start, end, where in reversed(parts)
    )


def _counted(phases: Sequence[tuple[str, int, int]]) -> list[Part]:
    """Number each phase by how many of its name came before it."""
    seen: Counter[str] = Counter()
    counted = []
    for name, start, end in sorted(phases, key=lambda one: one[1]):
        counted.append((name, start, end, str(seen[name])))
        seen[name] += 1
    return counted


def tiled(children: Sequence[Part], bounds: tuple[int, int]) -> list[Part]:
    """Tile *bounds* backwards: each part is what ended last before the next one began."""
    start, until = bounds
    tiles: list[Part] = []
    for what, begun, ended, where in sorted(children, key=lambda child: child[2], reverse=True):
        one, other = max(begun, start), min(ended, until)
        if other <= one:
            continue
        if other < until:
            tiles.append(("", other, until, ""))
        tiles.append((what, one, other, where))
        until = one
    if until > start:
        tiles.append(("", start, until, ""))
    return tiles[::-1]


def _inside(found: Trajectories, start: int, end: int) -> list[Part]:
    """Tile a stretch of the rollout by the trajectory that ended last, and those before it.

    Where trajectories run one after another, each waits for the one that ended before it began.
    """
    around = f"{found.phase}: around trajectories"
    place, until, parts = int(np.argmax(found.ended)), end, list[Part]()
    while True:
        began, ended = max(start, int(found.began[place])), min(until, int(found.ended[place]))
        if ended <= began:
            break
        if until > ended:
            parts.append((around, ended, until, ""))
        parts += reversed(_of_one(found, place, began, ended))
        until = began
        before = np.flatnonzero(found.ended <= found.began[place])
        if not len(before):
            break
        place = int(before[np.argmax(found.ended[before])])
    if not parts:
        return [(found.phase, start, end, "")]
    return [*([(around, start, until, "")] if until > start else []), *reversed(parts)]


def _of_one(found: Trajectories, place: int, began: int, ended: int) -> list[Part]:
    """Tile a trajectory by what it did."""
    name = f"trajectory {found.name(place)}"
    words, children = found.words, list[Part]()
    for row in found.of(place):
        what = words[row["name"]]
        if what in ("turn", "trajectory"):
            continue
        first, last = int(row["start"]), int(row["end"])
        replica, tool = words[row["replica"]], words[row["tool"]]
        where = name + (f", replica {replica}" if replica else "")
        if what == "request" and row["queued"] > 0:
            served = min(first + int(row["queued"]), last)
            children.append((f"{found.phase}: queue", first, served, where))
            first = served
        label = f"{what} {tool}" if tool else what
        children.append((f"{found.phase}: {label}", first, last, where))
    return [
        (what or f"{found.phase}: agent", one, other, where or name)
        for what, one, other, where in tiled(children, (began, ended))
    ]
