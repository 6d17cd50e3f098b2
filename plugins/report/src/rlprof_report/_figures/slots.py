"""Figure 6: the slots of a rollout replica, and why they were empty; the shares add up to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report.values.step import Replica

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_report._figures.trajectories import Trajectories

_RUN, _QUEUE, _TOOLS, _THERE = range(4)


def replicas_of(found: Trajectories, served_by: np.ndarray) -> Iterator[tuple[Replica, float]]:
    """Account for the slots of each replica; return with it slots x time, its weight.

    *served_by* is the number of the replica of each part.
    """
    parts = found.parts
    is_request, is_tool = found.named("request"), found.named("tool_call")
    homes = _homes(found, is_request, served_by)
    home = homes[np.searchsorted(found.ids, parts["trajectory"])]
    names = found.words
    numbers = np.unique(served_by[is_request]).tolist()
    named = [one for one in numbers if names[one]]  # what names none goes to a judge, an API
    for number in sorted(named or numbers, key=lambda one: _order(names[one])):
        requests = parts[is_request & (served_by == number)]
        tools = parts[is_tool & (home == number)]
        there = homes == number
        yield _replica(
            names[number] or "all",
            requests,
            tools,
            (found.began[there], found.ended[there]),
            (found.start, found.end),
        )


def _order(name: str) -> tuple[int, str]:
    return (int(name) if name.isdecimal() and len(name) < 9 else 1 << 30), name


def _homes(found: Trajectories, is_request: np.ndarray, served_by: np.ndarray) -> np.ndarray:
    homes = np.full(len(found.ids), -2, dtype=np.int64)
    places = np.searchsorted(found.ids, found.parts["trajectory"][is_request])
    homes[places] = served_by[is_request]  # sorted by time: the last one stays
    return homes


def _replica(
    name: str,
    requests: np.ndarray,
    tools: np.ndarray,
    there: tuple[np.ndarray, np.ndarray],
    bounds: tuple[int, int],
) -> tuple[Replica, float]:
    start, end = bounds
    asked, done = requests["start"], requests["end"]
    begun = np.minimum(asked + requests["queued"], done)
    first, last = int(asked.min()), int(done.max())
    times, what, change = _events(
        (_RUN, begun, done), (_QUEUE, asked, begun), (_TOOLS, tools["start"], tools["end"]),
        (_THERE, *there),
    )  # fmt: skip
    counts = [np.cumsum(np.where(what == one, change, 0)) for one in range(4)]
    moments = np.concatenate([[start], np.clip(times, start, end), [end]])
    lengths = np.diff(moments).astype(float)  # between an event and the next one
    at = np.concatenate([[start], times])
    running, queue, in_tools, trajectories = (np.concatenate([[0], one]) for one in counts)
    slots = int(running[lengths > 0].max()) if (lengths > 0).any() else 0
    whole = float(slots) * (end - start)
    idle = slots - running
    finished, before = at >= last, at < first
    queued = ~finished & ~before & (queue > 0)
    rest = ~finished & ~before & ~queued
    tooled = np.minimum(idle, in_tools)
    left = idle - tooled

    def share(weights: np.ndarray) -> float:
        return float((lengths * weights).sum() / whole) if whole else 0.0

    replica = Replica(
        name=name,
        slots=slots,
        requests=len(requests),
        tokens=int(requests["tokens"].sum()),
        end_s=(last - start) / 1e9,
        end90_s=(_bulk(requests) - start) / 1e9,
        running=share(running),
        start=share(idle * before),
        queued=share(idle * queued) if requests["queued"].any() else None,
        tools=share(tooled * rest),
        tail=share(left * (rest & (trajectories > 0))),
        finished=share(idle * finished) if whole else 1.0,
        outside=share(left * (rest & (trajectories <= 0))),
    )
    return replica, whole


def _bulk(requests: np.ndarray) -> float:
    """Return when nine in ten trajectories had their last answer; one with many turns is one."""
    _, places = np.unique(requests["trajectory"], return_inverse=True)
    last = np.zeros(places.max() + 1)
    np.maximum.at(last, places, requests["end"])
    return float(np.percentile(last, 90, method="lower"))


def _events(
    *kinds: tuple[int, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lay beginnings and ends on one line; at the same moment an end comes first."""
    times = np.concatenate([edge for _, start, end in kinds for edge in (start, end)])
    what = np.concatenate([np.full(2 * len(start), kind) for kind, start, _ in kinds])
    change = np.concatenate([
        np.concatenate([np.ones(len(start), int), -np.ones(len(end), int)])
        for _, start, end in kinds
    ])  # fmt: skip
    order = np.lexsort((change, times))
    return times[order], what[order], change[order]
