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
        found["rollout"] = [_replica(one) for one in _replicas(trainer)]
    found["agent"] = getattr(agents, "agent_loop_workers", ())
    return {role: list(given) for role, given in found.items() if role in roles and given}


def _replicas(trainer: Any) -> list[Any]:
    """List replicas, those of other managers among them (verl 0.9.1, separate_async)."""
    managers = getattr(trainer, "_rollout_server_managers", lambda: [trainer.llm_server_manager])
    return [one for manager in managers() for one in manager.get_replicas()]


def _replica(one: Any) -> Replica:
    first = one.replica_rank * one.world_size
    ranks = range(first, first + one.world_size)
    return Replica(one.servers[0], via=f"actor:{_ENGINE_OF[one.config.name]}", ranks=ranks)
