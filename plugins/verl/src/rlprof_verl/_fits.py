"""What rlprof uses of verl's trainers, by name; a verl without one of them is refused."""

from __future__ import annotations

from typing import Any

PHASES = {
    "_compute_reward_colocate": "reward",
    "_compute_old_log_prob": "old_log_prob",
    "_compute_ref_log_prob": "ref",
    "_compute_values": "values",
    "_update_critic": "update_critic",
    "_update_actor": "update_actor",
    "_save_checkpoint": "save_checkpoint",
}
"""Methods of both trainers, and what verl calls the time that each takes (`timing_s/...`)."""

V1_PHASES = {**PHASES, "_compute_advantage": "adv"}
V1 = (
    "init", "fit", "on_step_begin", "_add_batch_to_generate", "on_sample_begin", "on_sample_end",
    "on_step_end", "_validate", *V1_PHASES,
)  # fmt: skip
"""Methods of `verl.trainer.ppo.v1.trainer_base.PPOTrainer`, since verl 0.9.0."""

LEGACY = ("init_workers", "fit", "_start_profiling", "_stop_profiling", "_validate", *PHASES)
"""Methods of `verl.trainer.ppo.ray_trainer.RayPPOTrainer`."""


def is_v1(cls: type[Any]) -> bool:
    """Whether *cls* is a trainer of verl's newer kind."""
    return hasattr(cls, "on_step_begin")


def misfit(cls: type[Any]) -> str:
    """Say why *cls* cannot be recorded; empty if it can."""
    import verl

    name = f"{cls.__name__} of verl {verl.__version__}"
    if not is_v1(cls) and cls.__module__ != "verl.trainer.ppo.ray_trainer":
        return f"{name} has a loop of its own ({cls.__module__})"
    missing = [one for one in (V1 if is_v1(cls) else LEGACY) if not hasattr(cls, one)]
    return f"{name} has no {', '.join(missing)}" if missing else ""
