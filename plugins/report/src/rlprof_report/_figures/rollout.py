"""Figures 5, 7, 8, 14 and 15: the rollout of a step, its tail, its tools, its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rlprof_report._figures.blocked import blocked_of
from rlprof_report._figures.intervals import without
from rlprof_report._figures.slots import replicas_of
from rlprof_report.values.step import Late, Rollout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof_report._figures.trajectories import Trajectories
    from rlprof_run import Process

SHARES = (0.9, 0.95, 0.99)
_CLIFF = 4.0
"""The late ones are the last tenth if its tail is so many times that of the last twentieth: then
all of the tenth end late together. Without such a cliff, a tenth is late by chance."""
_BINS = 200


def rollout_of(found: Trajectories, processes: Sequence[Process], epoch: int) -> Rollout:
    """Make the figures of one rollout."""
    parts = found.parts
    is_request, is_tool = found.named("request"), found.named("tool_call")
    requests, tools = parts[is_request], parts[is_tool]
    seconds = (found.ended - found.began) / 1e9
    order = np.argsort(found.ended, kind="stable")
    ended = (found.ended[order] - found.start) / 1e9
    last = int(order[-1])
    accounted = list(replicas_of(found, _served_by(found, processes)))
    replicas = tuple(replica for replica, _ in accounted)
    slots = sum(weight for _, weight in accounted)
    ends = [[one.end_s for one in replicas], [one.end90_s for one in replicas]]
    length_s = (found.end - found.start) / 1e9
    tokens = int(_tokens(found).sum())
    tooling, by_tool = _sums(found, tools), _by_tool(found, tools)
    gain_s, spared_s = _gain(found, tooling)
    is_most = tools["tool"] == found.words.number(next(iter(by_tool), ""))
    rewarding = _sums(found, parts[found.named("reward")])
    tail_s = {f"{q:g}": float(ended[-1] - ended[_at(q, len(ended))]) for q in SHARES}
    share = 0.9 if tail_s["0.9"] >= _CLIFF * tail_s["0.95"] else 0.95
    tail = tail_s[f"{share:g}"]
    rollout = Rollout(
        phase=found.phase,
        start_s=(found.start - epoch) / 1e9,
        end_s=(found.end - epoch) / 1e9,
        trajectories=len(found.ids),
        requests=len(requests),
        tokens=tokens,
        tokens_per_s=tokens / length_s if length_s > 0 else 0.0,
        trajectory_s=_quantiles(seconds, {"p50": 50, "p90": 90, "p99": 99, "max": 100}),
        tail_s=tail_s,
        # Without the late ones it ends earlier by the tail at least; the others end earlier, too,
        # but hardly before all take as long as the median one.
        tail_bound_s=min(max(tail, _gain(found, seconds)[0]), 2 * tail),
        late_share=share,
        late=_late(found, order, share),
        replicas=replicas,
        # A single trajectory is no shorter on another replica.
        even_gain_s=min(max(one) - float(np.mean(one)) for one in ends) if replicas else 0.0,
        utilisation=sum(one.running * weight for one, weight in accounted) / slots
        if slots
        else None,
        tools_longest_s=float(tooling[last]),
        tools_median_s=float(np.median(tooling)),
        no_request_s=_no_request_s(found, requests) if len(requests) else 0.0,
        longest=found.name(last),
        queue_s=_quantiles(requests["queued"] / 1e9, {"p50": 50, "p99": 99})
        if requests["queued"].any()
        else {},
        first_token_s=_quantiles(
            requests["first_token"][~np.isnan(requests["first_token"])], {"p50": 50, "p99": 99}
        ),
        preemptions=int(requests["preemptions"][requests["preemptions"] >= 0].sum())
        if (requests["preemptions"] >= 0).any()
        else None,
        tools_gain_s=gain_s,
        rewards_gain_s=_gain(found, rewarding, usual=0.0)[0],
        stalls=int((spared_s >= gain_s / 2).sum()) if gain_s > 0 else 0,
        stalls_in=_stalls_in(found, tools, spared_s >= gain_s / 2) if gain_s > 0 else "",
        tools_by_name=by_tool,
        tool_gain_s=_gain(found, _sums(found, tools[is_most]), usual=0.0)[0],
        blocked=blocked_of(found),
    )
    return _with_curves(rollout, found, requests)


def _gain(
    found: Trajectories, spent: np.ndarray, usual: float | None = None
) -> tuple[float, np.ndarray]:
    """Return how much earlier the last one ends if none spends more than *usual*, or the median.

    The second value is what each one is spared.
    """
    spared = np.maximum(0.0, spent - (np.median(spent) if usual is None else usual))
    return float(found.ended.max() - (found.ended - spared * 1e9).max()) / 1e9, spared


def _at(share: float, count: int) -> int:
    """Return the place at which *share* have ended; one at least comes after it."""
    return max(0, min(int(np.ceil(share * count)) - 1, count - 2))


def _quantiles(values: np.ndarray, asked: Mapping[str, float]) -> dict[str, float]:
    if not len(values):
        return {}
    found = np.percentile(values, list(asked.values()))
    return {name: float(value) for name, value in zip(asked, found, strict=True)}


def _sums(found: Trajectories, rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Add up *rows* by trajectory: their seconds, or *weights*."""
    if weights is None:
        weights = (rows["end"] - rows["start"]) / 1e9
    places = np.searchsorted(found.ids, rows["trajectory"])
    sums: np.ndarray = np.bincount(places, weights=weights, minlength=len(found.ids))
    return sums


def _tokens(found: Trajectories) -> np.ndarray:
    """Return the tokens of each trajectory, as its requests noted them, else as it did itself."""
    requests = found.parts[found.named("request")]
    rows = requests if requests["tokens"].any() else found.wholes
    return _sums(found, rows, rows["tokens"].astype(float))


def _served_by(found: Trajectories, processes: Sequence[Process]) -> np.ndarray:
    """Return the replica that each part notes, else that of the process that wrote it."""
    numbers = [
        -1 if process.target.replica is None else found.words.number(process.target.replica)
        for process in processes
    ]
    by_process = np.array(numbers, dtype=np.int64)
    noted = found.parts["replica"]
    return np.where(noted >= 0, noted, by_process[found.parts["process"]])


def _late(found: Trajectories, order: np.ndarray, share: float) -> Late | None:
    """Compare those that end after *share* with the others; None: most run one after another."""
    count, by_start = len(order), np.argsort(found.began, kind="stable")
    before = np.maximum.accumulate(found.ended[by_start])[:-1]
    if count < 2 or (found.began[by_start][1:] >= before).mean() > 1 / 2:
        return None
    is_request = found.named("request")
    requests, tools = found.parts[is_request], found.parts[found.named("tool_call")]
    cut = _at(share, count) + 1
    late, rest = order[cut:][::-1], order[:cut]
    asked, tooling = _sums(found, requests), _sums(found, tools)
    lasted = (found.ended - found.began) / 1e9
    other = lasted - asked - tooling
    tokens = _tokens(found)

    def more(values: np.ndarray) -> float:
        return float(values[late].mean() - values[rest].mean())

    usual = float(tokens[rest].mean())
    halfway = (found.ended[late[0]] + found.ended[rest[-1]]) / 2  # others only came after the rest
    named = [int(place) for place in late[:20] if found.ended[place] >= halfway]
    return Late(
        trajectories=tuple(map(found.name, named)),
        requests_s=more(asked),
        tools_s=more(tooling),
        other_s=more(other),
        tokens_ratio=float(tokens[late].mean()) / usual if usual > 0 else 1.0,
    )


def _no_request_s(found: Trajectories, requests: np.ndarray) -> float:
    alive = zip(found.began.tolist(), found.ended.tolist(), strict=True)
    return without(alive, requests[["start", "end"]].tolist()) / 1e9


def _by_tool(found: Trajectories, tools: np.ndarray) -> dict[str, float]:
    names, places = np.unique(tools["tool"], return_inverse=True)
    sums = np.bincount(places, weights=(tools["end"] - tools["start"]) / 1e9)
    named = [(found.words[int(n)] or "?", float(s)) for n, s in zip(names, sums, strict=False)]
    return dict(sorted(named, key=lambda item: -item[1])[:20])


def _stalls_in(found: Trajectories, tools: np.ndarray, stalled: np.ndarray) -> str:
    """Name the tool in which *stalled* trajectories spend most time beyond the median one."""
    more: dict[str, float] = {}
    for name in np.unique(tools["tool"]).tolist():
        took = _sums(found, tools[tools["tool"] == name])
        more[found.words[name] or "?"] = float((took - np.median(took))[stalled].sum())
    return max(more, key=lambda one: more[one])


def _with_curves(rollout: Rollout, found: Trajectories, requests: np.ndarray) -> Rollout:
    ended = np.sort(found.ended - found.start) / 1e9
    if len(ended) > _BINS:
        ended = np.quantile(ended, np.linspace(0, 1, _BINS))
    rollout = attrs.evolve(rollout, ended=tuple(ended.tolist()))
    length = (found.end - found.start) / 1e9
    if not len(requests) or length <= 0:
        return rollout
    done = (requests["end"] - found.start) / 1e9
    begun = np.minimum((requests["start"] + requests["queued"] - found.start) / 1e9, done)
    edges = np.linspace(0, length, _BINS + 1)
    width = length / _BINS
    in_flight = np.diff(_integral(edges, begun, done, np.ones(len(begun)))) / width
    pace = requests["tokens"] / np.maximum(done - begun, 1e-9)
    rate = np.diff(_integral(edges, begun, done, pace)) / width
    return attrs.evolve(
        rollout,
        in_flight=tuple(in_flight.tolist()),
        tokens_rate=tuple(rate.tolist()) if requests["tokens"].any() else (),
    )


def _integral(
    edges: np.ndarray, begun: np.ndarray, done: np.ndarray, pace: np.ndarray
) -> np.ndarray:
    """Return how much was done until each of *edges*, by all that went on at their paces."""
    moments = np.concatenate([begun, done])
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    rates = np.cumsum(np.concatenate([pace, -pace])[order])
    amounts = np.concatenate([[0.0], np.cumsum(np.diff(moments) * rates[:-1])])
    until: np.ndarray = np.interp(edges, moments, amounts)
    return until
