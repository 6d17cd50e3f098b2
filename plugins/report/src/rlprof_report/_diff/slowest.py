"""The rank that a change comes from, where one rank holds up the others."""

from __future__ import annotations

from collections import Counter
from math import log
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof_report._diff.part import Part
    from rlprof_report.values import Ranks
    from rlprof_report.values.diff import Change

_LEAST_S = 1e-9


def slowest_of(change: Change, a: Part, b: Part) -> str:
    """Name the rank that explains half of *change*: of B where B is slower, else of A."""
    if change.state not in ("slower", "faster") or change.change is None:
        return ""
    fast, slow = (a, b) if change.state == "slower" else (b, a)
    before, after = (_slowest(part, change.name) for part in (fast, slow))
    grown = _behind(after) - _behind(before)
    names = Counter(f"{one.role} {one.slowest}" for one in after if not one.meets)
    for name, steps in names.most_common(1):
        if steps * 2 > len(after) and grown >= abs(log(1 + change.change)) / 2:
            return name
    return ""


def _slowest(part: Part, phase: str) -> list[Ranks]:
    """Return who is slowest in *phase*, step by step."""
    steps = [[one for one in step.ranks if one.phase == phase] for _, step in part.compared()]
    return [max(own, key=lambda one: one.wait_s) for own in steps if own]


def _behind(slowest: list[Ranks]) -> float:
    """Return how far the slowest is usually behind the others, as the log of a ratio."""
    return median([
        0.0 if one.meets else log(max(one.max_s, _LEAST_S) / max(one.max_s - one.wait_s, _LEAST_S))
        for one in slowest
    ] or [0.0])  # fmt: skip
