"""Calls that hold up an event loop: while one runs, no other trajectory of its thread moves on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report.values.step import Blocked

if TYPE_CHECKING:
    from rlprof_report._figures.trajectories import Trajectories

_COMPANY = 2
"""Other trajectories in flight, or nobody is held up."""
_EXPECTED = 40.0
"""Starts and ends of spans during the calls, if the two were independent; a turn has up to four at
the same time."""
_SEEN = 0.05
"""The share of these that really do, at most."""
_AT_ONCE, _AT_ONCE_US = 0.1, 2000
"""Others are held up if they move on so soon after a call: a share of it, and these microseconds.
Without that, they may all wait for an engine that answers in batches."""


def blocked_of(found: Trajectories) -> Blocked | None:
    """Return the tool, or the rewards, that hold up a thread for longest; None: none does.

    Trajectories share a thread only on an event loop. All calls of a tool are judged together, for
    a short call that is awaited may see nothing else move by chance; a long one also alone.
    """
    rows, best = np.concatenate([found.parts, found.wholes]), None
    threads, counts = np.unique(found.wholes[["process", "thread"]], return_counts=True)
    for process, thread in threads[counts > _COMPANY].tolist():
        own = rows[(rows["process"] == process) & (rows["thread"] == thread)]
        loop = _Thread(own, own["name"] == found.words.number("trajectory"))
        for name in ("tool_call", "reward"):
            is_call = own["name"] == found.words.number(name)
            for tool in np.unique(own["tool"][is_call]).tolist():
                chosen = is_call & (own["tool"] == tool)
                (by_all, calls), by_one = loop.held_up(chosen), loop.held_up_by_one(chosen)
                if max(by_all, by_one) > (best.seconds if best else 0):
                    seconds, calls = (by_one, 1) if by_one > by_all else (by_all, calls)
                    best = Blocked(
                        seconds, calls, process, name, found.words[tool], by_one > by_all
                    )
    return best


class _Thread:
    """The spans of one thread, in microseconds after the first of them."""

    def __init__(self, rows: np.ndarray, is_whole: np.ndarray) -> None:
        first = rows["start"].min()
        self._start, self._end = ((rows[key] - first) // 1000 for key in ("start", "end"))
        _, numbers = np.unique(rows["trajectory"], return_inverse=True)
        self._base = numbers.astype(np.int64) << 42  # 50 days
        moments = np.concatenate([self._start, self._end])
        self._moments = np.sort(moments)
        self._own_moments = np.sort(moments + np.concatenate([self._base, self._base]))
        self._began, self._ended = np.sort(self._start[is_whole]), np.sort(self._end[is_whole])

    def held_up_by_one(self, chosen: np.ndarray) -> float:
        """Return how long the longest quiet one of the *chosen* holds up others; zero: none."""
        places = np.flatnonzero(chosen)
        quiet = places[self._others(places, self._start[places], self._end[places]) == 0]
        if not len(quiet):
            return 0.0
        longest = quiet[np.argmax(self._end[quiet] - self._start[quiet])]
        return self.held_up(np.arange(len(chosen)) == longest)[0]

    def held_up(self, chosen: np.ndarray) -> tuple[float, int]:
        """Return how long, and how often, the *chosen* calls hold up the others; zero: never."""
        start = self._start[chosen]
        open_ = np.searchsorted(self._began, start) - np.searchsorted(self._ended, start)
        chosen = np.flatnonzero(chosen)[open_ > _COMPANY]
        start, end = self._start[chosen], self._end[chosen]
        took = end - start
        expected = took.sum() * len(self._moments) / max(1, int(self._moments[-1]))
        inside = self._others(chosen, start, end)
        at_once = (np.sort(start)[1:] < np.sort(end)[:-1]).sum()  # one for a batch, or awaited
        if max(inside.sum() / _SEEN, _EXPECTED) > expected or at_once > _SEEN * len(start):
            return 0.0, 0
        soon = self._others(chosen, start, end + (_AT_ONCE * took).astype(int) + _AT_ONCE_US) > 0
        if took[soon].sum() < took.sum() / 2:
            return 0.0, 0
        return float(took[inside == 0].sum()) / 1e6, int((inside == 0).sum())

    def _others(self, chosen: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Count what begins or ends between *start* and *end* in other trajectories."""
        base = self._base[chosen]
        return np.asarray(
            _between(self._moments, start, end)
            - _between(self._own_moments, base + start, base + end)
        )


def _between(moments: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    return np.searchsorted(moments, end, "left") - np.searchsorted(moments, start, "right")
