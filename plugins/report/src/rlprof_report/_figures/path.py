"""Figure 9: the critical path of a step; its parts tile the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report.values import PathPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report._figures.phases import Piece
    from rlprof_report._figures.trajectories import Trajectories
    from rlprof_report.values import Ranks

BETWEEN = "between phases"

Part = tuple[str, int, int, str]
"""What, from, to, where."""


def path_of(
    pieces: Sequence[Piece],
    bounds: tuple[int, int],
    *,
    ranks: Sequence[Ranks],
    found: Trajectories | None,
    epoch: int,
) -> tuple[PathPart, ...]:
    """Walk back from the end of a step through whatever it waited for."""
    slowest: dict[str, Ranks] = {}
    for one in ranks:
        if one.phase not in slowest or one.max_s > slowest[one.phase].max_s:
            slowest[one.phase] = one
    parts: list[Part] = []
    for what, start, end, _ in tiled([(p.name, p.start, p.end, "") for p in pieces], bounds):
        if found is not None and what and what == found.phase:
            parts += _inside(found, start, end)
        else:
            rank = slowest.get(what)
            where = f"{rank.role} {rank.slowest}" if rank is not None and not rank.meets else ""
            parts.append((what or BETWEEN, start, end, where))
    return tuple(
        PathPart(what, (start - epoch) / 1e9, (end - epoch) / 1e9, where)
        for what, start, end, where in parts
    )


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
    """Tile a stretch of the rollout by the trajectory that ended last."""
    last = int(np.argmax(found.ended))
    name = f"trajectory {found.name(last)}"
    words, children = found.words, list[Part]()
    for row in found.of(last):
        what = words[row["name"]]
        if what in ("turn", "trajectory"):
            continue
        begun, ended = int(row["start"]), int(row["end"])
        replica, tool = words[row["replica"]], words[row["tool"]]
        where = name + (f", replica {replica}" if replica else "")
        if what == "request" and row["queued"] > 0:
            served = min(begun + int(row["queued"]), ended)
            children.append((f"{found.phase}: queue", begun, served, where))
            begun = served
        label = f"{what} {tool}" if tool else what
        children.append((f"{found.phase}: {label}", begun, ended, where))
    began, ended = max(start, int(found.began[last])), min(end, int(found.ended[last]))
    if ended <= began:
        return [(found.phase, start, end, "")]
    parts = [
        (what or f"{found.phase}: agent", one, other, where or name)
        for what, one, other, where in tiled(children, (began, ended))
    ]
    around = f"{found.phase}: around trajectories"
    if began > start:
        parts.insert(0, (around, start, began, ""))
    if end > ended:
        parts.append((around, ended, end, ""))
    return parts
