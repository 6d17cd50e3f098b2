"""Training workers are born as their tools want it: under nsys, for one."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import rlprof
from rlprof_ray import runtime_env

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof.config import Config

ROLES = ("actor", "critic")
"""Roles whose processes verl makes as a `RayWorkerGroup`, in this order if they share one."""


@contextmanager
def launched(trainer: Any, config: Config) -> Iterator[None]:
    """Have workers that *trainer* makes in this block start as `rlprof.launch` says, by rank.

    verl has no key for it. So this replaces `RayWorkerGroup._create_worker`, if a tool needs it,
    and gives it back.
    """
    recorded = [role for role in ROLES if role in config.roles]
    roles = [one for one in recorded if _env(config, one, (config.roles[one].ranks or (0,))[0])]
    if not roles:
        yield
        return
    from verl.single_controller.ray.base import RayWorkerGroup

    own = RayWorkerGroup._create_worker  # noqa: SLF001 -- verl has no other place
    seen: set[Any] = set()

    @functools.wraps(own)
    def _create_worker(group: Any, *args: Any, **given: Any) -> Any:
        pool, rank, made = map(given.get, ("resource_pool", "rank", "ray_cls_with_init"))
        held = trainer.resource_pool_to_cls.get(pool, ())  # names of verl's: `actor_rollout`
        there = [role for role in roles if any(name.startswith(role) for name in held)]
        envs = [_env(config, role, rank) for role in there]
        env = next(filter(None, envs), {})  # of the first role that is recorded on this rank
        if made is None or (pool, rank) in seen:  # replicas may follow in the same pool
            env = {}
        seen.add((pool, rank))
        with _added(made, env):
            return own(group, *args, **given)

    RayWorkerGroup._create_worker = _create_worker  # noqa: SLF001
    try:
        yield
    finally:
        RayWorkerGroup._create_worker = own  # noqa: SLF001


def _env(config: Config, role: str, rank: Any) -> Mapping[str, Any]:
    return runtime_env(rlprof.launch(config, role=role, rank=rank))


@contextmanager
def _added(made: Any, env: Mapping[str, Any]) -> Iterator[None]:
    """Add *env* to what verl asks of Ray for the next actor of the class *made*."""
    if not env:
        yield
        return
    own = made.update_options

    def update_options(options: dict[str, Any]) -> None:
        theirs = options.get("runtime_env")
        if theirs is not None:
            variables = {**env.get("env_vars", {}), **theirs.get("env_vars", {})}
            options = {**options, "runtime_env": {**env, **theirs, "env_vars": variables}}
        own(options)

    made.update_options = update_options
    try:
        yield
    finally:
        del made.update_options
