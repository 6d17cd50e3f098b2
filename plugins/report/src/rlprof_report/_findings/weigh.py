"""Chooses the causes to report: of the run as a whole, of a few slow steps, of one step."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._findings.facts import Measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from rlprof_report.values.step import Step

    Floats = NDArray[np.float64]

Key = tuple[str, str]
"""A cause, and its rank, replica or tool; empty: the one with the largest share."""
LEAST = {
    "gap": 0.05, "straggler": 0.05, "alone": 0.05, "gc": 0.05, "data": 0.05, "tail": 0.15,
}  # fmt: skip
"""The least share of a step that is reported: low for causes that should not exist at all, high
for causes that vary by chance. A tenth for the others, and for causes of no particular process."""
USUAL = 0.1
_BY_CHANCE = 0.2
"""The same where most steps do not say why: one replica is always the last."""
_SAME = 0.8
"""Then it must be the same one in this share of the steps."""
_JITTER_S = 0.05
"""Causes that take less are not reported: schedulers and interpreters take as much."""
_RARE, _RARE_S = 0.25, 0.5
"""A cause of only a few steps must take this share of a step, and these seconds."""
_PART = 0.25
"""And this share of what the step takes longer: else something larger slows it."""
_OFTEN = 3
"""A cause that names one process in this many steps needs fewer seconds."""
_ONCE, _ONCE_S = 0.5, 1.0
"""The same for a cause of a single step: on a shared host, any process may stop for a second."""
_OF_SOMEBODY = ("straggler", "alone", "data", "gc", "gap")
"""Causes that name a process, if it is the same one in most steps."""
_CLOSE = 0.02
"""Costs that differ by a smaller share are alike."""
_ENOUGH = 5
"""The least number of clean steps for calling a single one slow."""


@attrs.frozen
class Weighed:
    """A cause, in the steps that show it."""

    measure: Measure
    """As in the typical step: the one where it took the median."""
    key: Key
    step: int
    """The typical step."""
    share: float
    steps: tuple[int, ...]
    per_step_s: float
    """What it adds to the mean or the neighbouring steps: findings are sorted by it."""
    is_rare: bool = False
    changes: bool = False
    """Whether it is another process each time."""

    @property
    def seconds(self) -> float:
        """What the cause takes of the typical step."""
        return self.measure.seconds


Row = dict[Key, Measure]
"""The largest measures of one step, by cause and by rank, replica or tool."""


def rows_of(measures: Sequence[Sequence[Measure]]) -> list[Row]:
    """Keep the largest measure of each cause in each step, and of each process where it counts."""
    rows: list[Row] = []
    for step in measures:
        row: Row = {}
        for one in step:
            for key in _keys(one):
                if key not in row or one.seconds > row[key].seconds:
                    row[key] = one
        rows.append(row)
    return rows


def _keys(measure: Measure) -> Iterable[Key]:
    yield measure.cause, ""
    if measure.cause in _OF_SOMEBODY:
        yield measure.cause, measure.who or "all"


def weigh(steps: Sequence[Step], rows: Sequence[Row]) -> list[Weighed]:
    """Weigh the causes over clean *steps*, the largest first.

    The second pass leaves out the largest cause: next to it, all others look small.
    """
    usual_s = float(np.median([one.seconds for one in steps]))
    found = _weighed(steps, rows, usual_s)
    lasting = [one.per_step_s for one in found if not one.is_rare]
    if lasting and lasting[0] < usual_s:
        found = _weighed(steps, rows, usual_s - lasting[0])
    return found


def _weighed(steps: Sequence[Step], rows: Sequence[Row], least_s: float) -> list[Weighed]:
    keys = dict.fromkeys(key for row in rows for key in row)
    chronic = [_chronic(steps, rows, key, least_s) for key in keys if key[1]]
    found = [one for one in chronic if one is not None]
    causes, whose = {one.measure.cause for one in found}, {one.key for one in found}
    for key in keys:
        is_new = not key[1] and key[0] not in causes
        one = _chronic(steps, rows, key, least_s) if is_new else None
        # Next to a rank that is always slow, another may be slow once.
        is_others = bool(key[1]) and key[0] in causes and key not in whose
        if one is None and (is_new or is_others) and len(steps) >= _ENOUGH:
            one = _rare(steps, rows, key)
        found += [] if one is None else [one]
    return sorted(found, key=lambda one: -one.per_step_s)


def _chronic(
    steps: Sequence[Step], rows: Sequence[Row], key: Key, least_s: float
) -> Weighed | None:
    costs = np.array([row[key].seconds if key in row else 0.0 for row in rows])
    median = float(np.median(costs))
    lengths = np.array([one.seconds for one in steps])
    shares = costs / np.maximum(lengths, 1e-9)  # a damaged file may have a step without length
    # The ratio of two medians varies; the median of ratios alone may hide a cause of slow steps.
    lower = min(median, float(np.median(shares) * np.median(lengths)))
    chances = [row[key].is_by_chance for row in rows if key in row]
    is_nobodys = key[0] in _OF_SOMEBODY and key[1] in ("", "all")
    least = (USUAL if is_nobodys else LEAST.get(key[0], USUAL)) * least_s
    is_by_chance = 2 * sum(chances) > len(chances)
    if is_by_chance:
        least = _BY_CHANCE * least_s
    is_ones = key[0] in _OF_SOMEBODY and not is_nobodys
    if lower < max(least, _JITTER_S) or (is_ones and np.percentile(costs, 33) < least / 2):
        return None
    shown = [place for place, cost in enumerate(costs.tolist()) if cost >= least / 2]
    who, times = Counter(rows[place][key].who for place in shown).most_common(1)[0]
    if is_by_chance and times < _SAME * len(rows):
        return None
    own = [place for place in shown if rows[place][key].who == who]
    if key[0] in ("tool", "tools"):  # another tool is another cause
        shown = own
    typical = _typical(own, costs, steps)
    return Weighed(
        measure=rows[typical][key],
        key=key,
        step=steps[typical].step,
        share=float(costs[typical]) / float(np.median(lengths)),
        steps=tuple(steps[place].step for place in shown),
        per_step_s=median,
        changes=times * 3 < len(shown) * 2,
    )


def _typical(places: Sequence[int], costs: Floats, steps: Sequence[Step]) -> int:
    """Return the place of the median cost; of those close to it, that of the most usual length."""
    median = sorted(costs[place] for place in places)[len(places) // 2]
    usual_s = float(np.median([steps[place].seconds for place in places]))
    close = [place for place in places if abs(costs[place] - median) <= _CLOSE * median]
    return min(close, key=lambda place: abs(steps[place].seconds - usual_s))


def _rare(steps: Sequence[Step], rows: Sequence[Row], key: Key) -> Weighed | None:
    """Weigh a cause in steps where it took far more than usual, and half of that delayed them."""
    usual_s = float(np.median([one.seconds for one in steps]))
    costs = np.array([row[key].seconds if key in row else 0.0 for row in rows])
    excess = costs - np.median(costs)
    slow = np.array([one.seconds for one in steps]) - usual_s
    is_large = (excess >= np.maximum(_RARE * usual_s, _PART * slow)) & (slow >= excess / 2)
    shown = np.flatnonzero(is_large & (excess >= _RARE_S)).tolist()
    often = np.flatnonzero(is_large & (excess >= _JITTER_S)).tolist()
    is_ones = key[0] in _OF_SOMEBODY and len({rows[one][key].who for one in often}) == 1
    if not shown and is_ones and len(often) >= _OFTEN:
        shown = often
    typical = _typical(shown, excess, steps) if shown else 0
    if key[0] in ("tool", "tools"):  # another tool is another cause
        shown = [one for one in shown if rows[one][key].who == rows[typical][key].who]
    if not shown or (len(shown) == 1 and excess[shown[0]] < max(_ONCE * usual_s, _ONCE_S)):
        return None
    whos = Counter(rows[place][key].who for place in shown)
    return Weighed(
        measure=rows[typical][key],
        key=key,
        step=steps[typical].step,
        share=float(costs[typical]) / float(np.median([steps[place].seconds for place in shown])),
        steps=tuple(steps[place].step for place in shown),
        per_step_s=float(excess[shown].sum()) / len(steps),
        is_rare=True,
        changes=whos.most_common(1)[0][1] * 2 < len(shown),
    )


def weigh_one(step: Step, row: Row, peers: Sequence[Step], rows: Sequence[Row]) -> list[Weighed]:
    """Weigh the causes of one step by their excess over its neighbours."""
    usual_s = float(np.median([one.seconds for one in peers]))
    slower_s = step.seconds - usual_s
    found = []
    for key, measure in row.items():
        if key[1]:
            continue
        usual = float(np.median([one[key].seconds if key in one else 0.0 for one in rows]))
        excess = measure.seconds - usual
        if excess >= USUAL * usual_s and slower_s >= excess / 2:
            found.append(in_one(step, key, measure, excess))
    return sorted(found, key=lambda one: -one.per_step_s)


def in_one(step: Step, key: Key, measure: Measure, excess: float) -> Weighed:
    """Weigh *measure* in its *step* alone."""
    share = measure.seconds / step.seconds
    return Weighed(measure, key, step.step, share, (step.step,), excess)
