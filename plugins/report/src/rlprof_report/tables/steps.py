"""The table `steps`: a row a step, its figures as columns, equal to those of the report.

Columns that `prof.figures()` has, too, are named as there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof_report._analyse import analyse
from rlprof_report.tables.schema import Columns, run_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step
    from rlprof_run import Run

STEP: Columns = {
    "run": "word", "process": "word", "step": "int", "state": "word", "start_ns": "int",
    "step_s": "float", "unaccounted_s": "float", "tokens": "int", "tokens_per_s": "float",
    "version": "word", "trajectories": "int", "requests": "int", "trajectory_p50_s": "float",
    "trajectory_p90_s": "float", "trajectory_p99_s": "float", "trajectory_max_s": "float",
    "tail90_s": "float", "tail95_s": "float", "tail99_s": "float", "slots_used": "float",
    "even_gain_s": "float", "no_request_s": "float", "wait_slowest_s": "float",
    "slowest_role": "word", "slowest_phase": "word", "slowest_rank": "int",
    "trainer_idle": "float", "rollout_idle": "float", "overlap": "float", "lag_p50": "float",
    "lag_p99": "float", "idle_device_s": "float", "gc_s": "float", "cost_s": "float",
}  # fmt: skip


def columns_and_rows(run: Run) -> tuple[Columns, Iterator[tuple[Any, ...]]]:
    """Return the columns, one for each phase and each help among them, and the rows."""
    analysis = analyse(run, most_json_bytes=0)
    phases = _in_order(phase.name for step in analysis.steps for phase in step.phases)
    helps = _in_order(one.what for step in analysis.steps for one in step.helps)
    columns = dict(STEP)
    columns |= {f"phase/{name}_s": "float" for name in phases}
    columns |= {f"help/{what.replace(' ', '_')}_s": "float" for what in helps}
    return columns, (_row(run, analysis, step, phases, helps) for step in analysis.steps)


def _in_order(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _row(
    run: Run, analysis: Analysis, step: Step, phases: list[str], helps: list[str]
) -> tuple[Any, ...]:
    rollout, flow = step.rollout, step.flow
    waits = (ranks for ranks in step.ranks if not ranks.meets)
    worst = max(waits, key=lambda ranks: ranks.wait_s, default=None)
    seconds = {phase.name: phase.seconds for phase in step.phases}
    bounds = {one.what: one.seconds for one in step.helps}
    own = {
        "run": run_name(run), "process": analysis.leader, "step": step.step, "state": step.state,
        "start_ns": analysis.epoch_ns + round(step.start_s * 1e9), "step_s": step.seconds,
        "unaccounted_s": step.unaccounted_s, "tokens": step.tokens or None,
        "version": step.version or None, "gc_s": step.pauses.get("gc", 0.0),
        "cost_s": step.cost_s,
    }  # fmt: skip
    if rollout is not None:
        own |= {
            "trajectories": rollout.trajectories, "requests": rollout.requests,
            "slots_used": rollout.utilisation, "even_gain_s": rollout.even_gain_s,
            "no_request_s": rollout.no_request_s, "tokens_per_s": rollout.tokens_per_s or None,
        }  # fmt: skip
        own |= {f"trajectory_{key}_s": value for key, value in rollout.trajectory_s.items()}
        own |= {f"tail{float(q) * 100:g}_s": value for q, value in rollout.tail_s.items()}
    if worst is not None:
        own |= {
            "wait_slowest_s": worst.wait_s, "slowest_role": worst.role,
            "slowest_phase": worst.phase, "slowest_rank": worst.slowest,
        }  # fmt: skip
    if flow is not None:
        own |= {
            "trainer_idle": flow.trainer_idle, "rollout_idle": flow.rollout_idle,
            "overlap": flow.overlap,
        }  # fmt: skip
        own |= {f"lag_{key}": value for key, value in flow.lag.items()}
    if step.bubbles:
        own["idle_device_s"] = sum(bubble.device_s for bubble in step.bubbles)
    return (
        *(own.get(name) for name in STEP),
        *(seconds.get(name) for name in phases),
        *(bounds.get(what) for what in helps),
    )
