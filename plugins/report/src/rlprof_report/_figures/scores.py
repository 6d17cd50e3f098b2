"""Figure 4, and the heat map: each rank in each phase against its peers and its own past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report.values import RankTable, Score

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._figures.ranks import Group

_MOST_CELLS = 200_000


def tables_of(
    groups: Sequence[Sequence[Group]], numbers: Sequence[int], clean: set[int]
) -> tuple[list[RankTable], list[Score], int]:
    """Lay out seconds by rank and step, and score the ranks over the clean steps.

    The last value counts the steps that the largest tables leave out.
    """
    by_phase: dict[tuple[str, str], list[Group]] = {}
    for step in groups:
        for group in step:
            by_phase.setdefault((group.role, group.phase), []).append(group)
    tables, scores, left_out = list[RankTable](), list[Score](), 0
    for (role, phase), found in sorted(by_phase.items()):
        ranks = np.unique(np.concatenate([group.ranks for group in found]))
        seconds = np.full((len(ranks), len(found)), np.nan)
        for column, group in enumerate(found):
            seconds[np.searchsorted(ranks, group.ranks), column] = group.seconds
        is_clean = [group.step in clean for group in found]
        if any(is_clean):
            scores += _scores(role, phase, ranks, seconds[:, is_clean])
        shown = max(1, min(len(found), _MOST_CELLS // len(ranks)))
        left_out = max(left_out, len(found) - shown)
        tables.append(_table(role, phase, ranks, seconds[:, -shown:], [
            int(numbers[group.step]) for group in found[-shown:]
        ]))  # fmt: skip
    return tables, scores, left_out


def _table(
    role: str, phase: str, ranks: np.ndarray, seconds: np.ndarray, steps: list[int]
) -> RankTable:
    rows = tuple(
        tuple(None if value != value else value for value in row)  # noqa: PLR0124 -- NaN
        for row in seconds.tolist()
    )
    return RankTable(role, phase, tuple(ranks.tolist()), tuple(steps), rows)


def _scores(role: str, phase: str, ranks: np.ndarray, seconds: np.ndarray) -> Iterator[Score]:
    known = ~np.isnan(seconds).all(axis=1)
    if not known.any():
        return
    medians = np.nanmedian(seconds[known], axis=1)
    best = np.nanmin(seconds[known], axis=1)
    least = float(medians.min())
    for rank, median, own in zip(
        ranks[known].tolist(), medians.tolist(), best.tolist(), strict=True
    ):
        relative, individual = (least / median, own / median) if median > 0 else (1.0, 1.0)
        yield Score(role, phase, rank, relative, individual)
