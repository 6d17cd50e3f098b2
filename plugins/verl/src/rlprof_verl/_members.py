"""Whom the fleet of a verl trainer attaches: workers, replicas, agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof_ray import Replica

if TYPE_CHECKING:
    from collections.abc import Collection

_ENGINE_OF = {"vllm": "engine", "sglang": "tokenizer_manager"}
"""The attribute of a verl server that is the engine."""


def members(trainer: Any, agents: Any, roles: Collection[str]) -> dict[str, list[Any]]:
    """Return the actors and replicas of *roles*; *agents* is verl's manager of agent loops."""
    found = {"actor": trainer.actor_rollout_wg.workers}
    if trainer.use_critic:
        found["critic"] = trainer.critic_wg.workers
    if "rollout" in roles:
        managers = [trainer.llm_server_manager]
        if hasattr(trainer, "_rollout_server_managers"):  # verl 0.9.1, separate_async
            managers = trainer._rollout_server_managers()  # noqa: SLF001
        found["rollout"] = [_replica(one) for each in managers for one in each.get_replicas()]
    found["agent"] = getattr(agents, "agent_loop_workers", ())
    return {role: list(given) for role, given in found.items() if role in roles and given}


def _replica(one: Any) -> Replica:
    first = one.replica_rank * one.world_size
    ranks = range(first, first + one.world_size)
    return Replica(one.servers[0], via=f"actor:{_ENGINE_OF[one.config.name]}", ranks=ranks)
