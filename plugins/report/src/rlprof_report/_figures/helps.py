"""Figures 10 and 11: upper bounds of single changes, and the overlap of an asynchronous step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report._figures.held import held_by
from rlprof_report._figures.intervals import Interval, clipped, covered, merged, without
from rlprof_report._figures.path import BETWEEN
from rlprof_report._figures.trajectories import ROLLOUT, SYNC, UPDATE, WAITING
from rlprof_report.values.step import Flow, Help

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlprof_report._figures.phases import Piece
    from rlprof_report._figures.trajectories import Trajectories
    from rlprof_report._spans.rows import Words
    from rlprof_report.values.step import Ranks, Rollout, Step


_BOTH = 0.5
"""If trainer and engines are both idle for more of a step, neither needs devices of the other."""


def helps_of(step: Step, *, leads_fleet: bool) -> tuple[Help, ...]:
    """List upper bounds, the largest first; each holds by itself, so no two are added."""
    # What a rank waits between phases for a slower one is no gap; a fleet's driver has one alone.
    frontier = () if leads_fleet else step.frontier
    gaps = [stage.seconds for stage in frontier if stage.name == BETWEEN]
    found = [
        *_in_rollout(step.rollout),
        Help(
            "slowest rank",
            min(step.seconds, _wait_s(step.ranks, {phase.name for phase in step.phases})),
            "in each phase the slowest rank takes as long as the median of the others",
        ),
        *_in_phases(step, leads_fleet=leads_fleet),
        Help("gaps", min([step.unaccounted_s, *gaps]), "phases follow one another without a gap"),
        Help("recording", step.cost_s, "rlprof starts and stops nothing in this step"),
    ]
    return tuple(sorted((one for one in found if one.seconds > 0), key=lambda one: -one.seconds))


def _in_rollout(rollout: Rollout | None) -> Iterator[Help]:
    if rollout is None or not rollout.phase:
        return
    yield Help(
        "tail",
        rollout.tail_bound_s,
        "no trajectory takes longer than the median one, and nothing else slows down",
    )
    if len(rollout.replicas) > 1:
        yield Help(
            "even replicas",
            rollout.even_gain_s,
            "all replicas end at the mean of their ends; moving requests changes no speed",
        )
    yield Help(
        "tools",
        rollout.tools_gain_s,
        "no trajectory spends longer in tools than the median one",
    )


def _wait_s(ranks: Sequence[Ranks], names: set[str]) -> float:
    """Add up, phase after phase, the wait for the slowest rank of trainers."""
    waits: dict[str, float] = {}
    for one in ranks:
        if one.phase in names and not one.meets and not ROLLOUT.search(one.phase):
            waits[one.phase] = max(one.wait_s, waits.get(one.phase, 0.0))
    return sum(waits.values())


def syncs_of(step: Step, *, leads_fleet: bool) -> dict[str, float]:
    """Return how long the weights take in each phase that brings them.

    Without what ranks wait in it for a late one: that is no sync. The phases of a fleet are those
    of its driver, which waits for all.
    """
    stages: dict[str, float] = {}
    for stage in () if leads_fleet else step.frontier:  # of several roles, the longest counts
        stages[stage.name] = max(stage.seconds, stages.get(stage.name, 0.0))
    syncs = (phase for phase in step.phases if SYNC.search(phase.name))
    return {one.name: min(one.seconds, stages.get(one.name, one.seconds)) for one in syncs}


def _in_phases(step: Step, *, leads_fleet: bool) -> Iterator[Help]:
    seconds, sync = step.seconds, sum(syncs_of(step, leads_fleet=leads_fleet).values())
    generated = sum(phase.seconds for phase in step.phases if ROLLOUT.search(phase.name))
    is_apart = step.rollout is not None and not step.rollout.phase
    if is_apart:  # what the sync spares is waited for instead
        sync -= sum(phase.seconds for phase in step.phases if WAITING.search(phase.name))
    yield Help("sync", min(sync, seconds), "weights are sent while other work runs")
    if generated and not is_apart:
        saved = seconds - max(generated + sync, seconds - generated - sync)
        yield Help(
            "one-step off-policy",
            max(0.0, saved),
            "the next rollout runs during training, on its own devices",
        )


def flow_of(
    pieces: Sequence[Piece],
    bounds: Interval,
    found: Trajectories | None,
    rollout: Rollout | None,
    *,
    running: np.ndarray,
    words: Words,
) -> Flow | None:
    """Describe a step that generates and updates at once; None: this step does not.

    *running* are the parts of trajectories that run in it, also those that began in an earlier one.
    """
    apart = found is not None and not found.phase
    rolling = [
        (p.start, p.end)
        for p in pieces
        if ROLLOUT.search(p.name) and not (apart and WAITING.search(p.name))
    ]
    if found is not None and apart:
        rolling += zip(found.began.tolist(), found.ended.tolist(), strict=True)
    rolling = clipped(rolling, *bounds)
    updates = [p for p in pieces if UPDATE.search(p.name) and not ROLLOUT.search(p.name)]
    updating = clipped([(p.start, p.end) for p in updates], *bounds)
    together, length = covered(rolling) - without(rolling, updating), bounds[1] - bounds[0]
    if together < 0.01 * length or length <= 0:
        return None
    syncs = [(p.start, p.end) for p in pieces if SYNC.search(p.name)]
    waiting = [(p.start, p.end) for p in pieces if WAITING.search(p.name)]
    idle_ns = covered([*waiting, *syncs]) if waiting else length - covered(updating)
    idle = idle_ns / length
    requests = running[running["name"] == words.number("request")]
    served = clipped(requests[["start", "end"]].tolist(), *bounds)
    used = rollout.utilisation if rollout is not None else None
    if (apart and served) or used is None:  # engines that never stop are idle without a request
        used = covered(served or rolling) / length
    count = len(found.ids) if found is not None else 0
    shorter = min(covered(rolling), covered(updating))
    return Flow(
        trainer_idle=idle,
        rollout_idle=1 - used,
        overlap=together / shorter if shorter else 0.0,
        sync_served_s=(covered(syncs) - without(syncs, served)) / 1e9,
        lag=_lag(pieces, found),
        advice=_advice(idle, 1 - used),
        held_by=held_by(merged(waiting), running, words, count),
    )


def _advice(trainer_idle: float, rollout_idle: float) -> str:
    """Say which side has devices to spare, by verl's rule, or that both wait."""
    if min(trainer_idle, rollout_idle) > _BOTH:
        return "The engines wait, too: look at what trajectories do between their requests."
    if rollout_idle > trainer_idle + 0.1:
        return "The engines wait more than the trainer: give some of their devices to it."
    if trainer_idle > rollout_idle + 0.1:
        return "The trainer waits more than the engines: give some of its devices to them."
    return "Trainer and engines are in balance."


def _lag(pieces: Sequence[Piece], found: Trajectories | None) -> dict[str, float]:
    """Return how many versions behind the trainer its trajectories are, where both are noted."""
    trained = [float(p.version) for p in pieces if p.version.isdecimal()]
    if not trained or found is None:
        return {}
    numbers = found.wholes["version"]
    texts = [found.words[number] for number in numbers[numbers >= 0].tolist()]
    lags = [max(trained) - float(text) for text in texts if text.isdecimal()]
    if not lags:
        return {}
    p50, p99 = np.percentile(lags, [50, 99])
    return {"p50": float(p50), "p99": float(p99), "max": max(lags)}
