"""The trajectories and requests of the rollout of each step."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._figures.meetings import begins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlprof_report._figures.phases import Piece
    from rlprof_report._figures.timeline import Timeline
    from rlprof_report._spans.recorded import Recorded
    from rlprof_report._spans.rows import Words

SYNC = re.compile(r"^(?!.*grad).*(weight|(?<!a)sync|broadcast_param|refit)", re.IGNORECASE)
"""Names of phases that bring weights to the engines."""
UPDATE = re.compile(r"update|train|learn|optim|backward", re.IGNORECASE)
WAITING = re.compile(r"wait|queue|get_batch|next_batch|idle", re.IGNORECASE)
"""Names of phases in which an asynchronous trainer waits for trajectories."""
REWARD = re.compile(r"reward|scor(e|ing)|verif|judg", re.IGNORECASE)
"""Names of phases that judge trajectories."""
ROLLOUT = re.compile(r"roll_?out|generat|\bgen\b|gen_|sampl", re.IGNORECASE)
"""Names of phases in which engines generate."""


@attrs.frozen(eq=False)
class Trajectories:
    """The rollout of one step; rows are sorted by trajectory, then by start."""

    phase: str
    """The phase that holds them; empty: the rollout runs in parallel with the phases."""
    start: int
    end: int
    parts: np.ndarray
    """Requests, tools and other spans of a trajectory, cut at the end."""
    ids: np.ndarray
    """The number of the word of each trajectory, sorted."""
    began: np.ndarray
    ended: np.ndarray
    words: Words
    wholes: np.ndarray
    """The spans `trajectory` themselves, for their attributes."""
    are_requests: bool = False
    """Whether there are only requests, and each of them stands for a trajectory."""

    def name(self, place: int) -> str:
        """Return the id of one of them."""
        return f"request {place}" if self.are_requests else self.words[int(self.ids[place])]

    def of(self, place: int) -> np.ndarray:
        """Return the parts of one of them."""
        own, sought = self.parts["trajectory"], self.ids[place]
        return self.parts[np.searchsorted(own, sought) : np.searchsorted(own, sought, "right")]

    def named(self, name: str) -> np.ndarray:
        """Say which parts are called *name*."""
        return np.asarray(self.parts["name"] == self.words.number(name))


def by_step(recorded: Recorded, timeline: Timeline) -> list[np.ndarray]:
    """Assign the parts of trajectories to the steps."""
    steps = timeline.of(recorded.parts)
    order = np.argsort(steps, kind="stable")
    edges = np.searchsorted(steps[order], np.arange(len(timeline) + 1))
    return [recorded.parts[order[start:end]] for start, end in pairwise(edges)]


def in_flight(recorded: Recorded, timeline: Timeline) -> Iterator[np.ndarray]:
    """Give the parts that run during each step, also those that began in an earlier one."""
    rows = recorded.parts[np.argsort(recorded.parts["start"], kind="stable")]
    starts, ends = rows["start"], rows["end"]
    firsts = np.searchsorted(np.maximum.accumulate(ends), timeline.starts, "right")
    lasts = np.searchsorted(starts, timeline.ends)
    edges = zip(firsts.tolist(), lasts.tolist(), timeline.starts.tolist(), strict=True)
    for first, last, begin in edges:
        yield rows[first:last][ends[first:last] > begin]  # one without end keeps all in reach


def tokens_of(recorded: Recorded, timeline: Timeline) -> list[int]:
    """Add up the tokens that requests noted in each step; where none did, those of trajectories."""
    rows, words = recorded.parts, recorded.words
    steps = timeline.of(rows)
    for name in ("request", "trajectory"):
        own = (steps >= 0) & (rows["name"] == words.number(name))
        if rows["tokens"][own].any():
            weights = rows["tokens"][own].astype(float)
            sums = np.bincount(steps[own], weights=weights, minlength=len(timeline))
            return [int(one) for one in sums.tolist()]
    return [0] * len(timeline)


def rollout_phase(parts: np.ndarray, pieces: Sequence[Piece], words: Words) -> str:
    """Name the phase in which most trajectories begin; without any, a phase with a usual name.

    If most trajectories begin in no phase, or go on for longer than it, or any outlasts an update
    or a wait, they run in parallel with the phases: then there is none. Nor is there one if they
    run during updates, and another phase waits for them.
    """
    names = list(dict.fromkeys(piece.name for piece in pieces))
    named = [name for name in names if ROLLOUT.search(name)]
    if not len(parts):
        return named[0] if named else ""
    whole = parts[parts["name"] == words.number("trajectory")]
    whole = whole if len(whole) else parts
    begin, end = whole["start"], whole["end"]
    inside, shared = Counter[str](), Counter[str]()
    for piece in pieces:
        inside[piece.name] += int(((begin >= piece.start) & (begin < piece.end)).sum())
        meet = np.minimum(end, piece.end) - np.maximum(begin, piece.start)
        shared[piece.name] += int(np.maximum(meet, 0).sum())
    best = max(named or names, key=lambda name: inside[name], default="")
    is_in_it = inside[best] * 2 >= len(begin) and shared[best] * 2 >= int((end - begin).sum())
    if not named and (WAITING.search(best) or UPDATE.search(best)):  # they may go on all the time
        edges = [piece.end for piece in pieces if piece.name == best]
        is_in_it &= not any(((begin < edge) & (end > edge)).any() for edge in edges)
        is_in_it &= not UPDATE.search(best) or not any(map(WAITING.search, names))
    return best if best and is_in_it else ""


def trajectories_of(
    parts: np.ndarray,
    pieces: Sequence[Piece],
    bounds: tuple[int, int],
    words: Words,
    ends: Mapping[str, int],
) -> Trajectories | None:
    """Take the spans that began in the rollout of the step that *bounds* names; None: none did.

    A trajectory comes in parts, and a later one (its reward) is of another phase. *ends*: when the
    last rank left each phase, if several ranks have it.
    """
    if not len(parts):
        return None
    phase = rollout_phase(parts, pieces, words)
    own = [piece for piece in pieces if piece.name == phase]
    start = min((piece.start for piece in own), default=bounds[0])
    end = max((piece.end for piece in own), default=bounds[1])
    end = max(end, min(ends.get(phase, end), bounds[1]))
    parts = parts[(parts["start"] >= start) & (parts["start"] < end)].copy()
    parts["end"] = np.minimum(parts["end"], end)
    is_whole = parts["name"] == words.number("trajectory")
    if not len(parts):
        return None
    keep = parts["trajectory"] >= 0
    are_requests = not keep.any()
    if are_requests:
        parts["trajectory"] = np.arange(len(parts))
    else:
        parts, is_whole = parts[keep], is_whole[keep]
    order = np.lexsort((parts["start"], parts["trajectory"]))
    parts, is_whole = parts[order], is_whole[order]
    first = np.flatnonzero(begins(parts["trajectory"]))
    began = np.minimum.reduceat(parts["start"], first)
    ended = np.maximum.reduceat(parts["end"], first)
    if not phase:
        start, end = int(began.min()), int(ended.max())
    ids = parts["trajectory"][first]
    return Trajectories(
        phase=phase,
        start=start,
        end=end,
        parts=parts[~is_whole],
        ids=ids,
        began=began,
        ended=ended,
        words=words,
        wholes=parts[is_whole],
        are_requests=are_requests,
    )
