"""Requests that wait in the engines: from counters or windows, if spans of requests lack it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from rlprof_report._figures.trajectories import ROLLOUT
from rlprof_report._plain import secs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof import Run
    from rlprof_report.values import Analysis

_MANY = 0.5
"""So many requests in the queue for each one that runs are worth a sentence."""
_LONG = 0.1
"""The least share of a step that the median request waits in a window for the same."""
_ENOUGH = 5
"""The least number of samples: there is one a second."""
_FULL = 0.9
"""More requests do not fit into a KV cache that is so full."""


def queues_of(analysis: Analysis, run: Run) -> str:
    """Say how many requests wait in the engines during rollouts; empty: few, or not known."""
    edges = np.array(sorted(_rollouts(analysis))).reshape(-1, 2)
    if not len(edges) or any(one.rollout and one.rollout.queue_s for one in analysis.steps):
        return ""
    found: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for sample in run.counters(name="requests_waiting"):
        values = sample.values
        if {"requests_waiting", "requests_running"} <= values.keys():
            at = (sample.time_ns - analysis.epoch_ns) / 1e9
            place = int(np.searchsorted(edges[:, 0], at, "right")) - 1
            if place >= 0 and at <= edges[place, 1]:
                waiting, running = values["requests_waiting"], values["requests_running"]
                used = values.get("kv_cache_use", 0.0)
                found[str(sample.target)].append((waiting, running, used))
    enough = [own for own in found.values() if len(own) >= _ENOUGH]
    means, count = [np.mean(own, axis=0) for own in enough], sum(map(len, enough))
    if not means:
        return _in_windows(analysis)
    waiting, running = np.sum(means, axis=0)[:2].tolist()
    if waiting < max(1.0, _MANY * running):
        return _in_windows(analysis)
    used = float(np.average([one[2] for one in means], weights=[one[0] for one in means]))
    todo = "let each engine run more requests at once" if used < _FULL else "give it more memory"
    cache = f"Their KV cache is {used:.0%} full: {todo}" if used >= 0.01 else todo.capitalize()
    return (
        f"During rollouts, {_count(waiting)} requests wait in the engines while {_count(running)} "
        f"run (mean of {count} samples). {cache}, or add replicas."
    )


def _in_windows(analysis: Analysis) -> str:
    """Say how long requests waited in the windows of an engine."""
    found = [] if analysis.device is None else analysis.device.requests
    worst = max(found, key=lambda one: one.queue_p50_s or 0.0, default=None)
    least_s = _LONG * (analysis.clean.median_s or 0.0)
    if worst is None or not worst.queue_p50_s or worst.queue_p50_s < least_s:
        return ""
    return (
        f"In its windows, half of the requests of {worst.target} wait {secs(worst.queue_p50_s)} or "
        "longer in the queue. Let each engine run more requests at once, or add replicas."
    )


def _count(mean: float) -> str:
    return f"{mean:.1f}" if mean < 10 else f"{mean:.0f}"


def _rollouts(analysis: Analysis) -> Iterator[tuple[float, float]]:
    """Give beginning and end of each rollout of clean steps."""
    for step in analysis.steps:
        if step.state != "clean":
            continue
        if step.rollout is not None and not step.rollout.phase:  # it runs next to training
            yield step.start_s, step.start_s + step.seconds
            continue
        for phase in step.phases:
            if ROLLOUT.search(phase.name):
                yield phase.start_s, phase.end_s
