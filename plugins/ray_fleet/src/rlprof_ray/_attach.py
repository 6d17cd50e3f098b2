"""The arguments of `attach`, checked, as the members and engines of their roles."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import ConfigError, shown
from rlprof.types import Target
from rlprof_ray._member import id_of
from rlprof_ray._replica import Replica, numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.config import Role

log = logging.getLogger("rlprof")


@attrs.frozen(eq=False)
class Given:
    """One actor or replica in a role."""

    handle: Any
    target: Target
    ranks: tuple[int, ...]
    is_member: bool = True
    """False: an engine that the driver reaches by itself."""
    attribute: str | None = None
    """The attribute of the actor that is the engine."""


def listed(role: str, given: Any, own: Role | None) -> list[Given]:
    """Give each object its place: actors in their order, replicas by the ranks they hold.

    Raise ConfigError for other objects. A replica of a role that the config does not name is left
    out, with a log line: you can record only trainers without changing your code.
    """
    if isinstance(given, Replica) or _is_actor(given) or not isinstance(given, Iterable):
        why = f"expected a list, got {shown(given)}; write {role}=[...]"
        raise ConfigError([f"attach: {role}: {why}"])
    everyone = list(given)
    engine = own is not None and own.engine is not None
    found = _replicas(role, everyone) if engine else _actors(role, everyone, own)
    world = max((one.target.world_size for one in found), default=0)
    beyond = [rank for rank in own.ranks or () if rank >= world] if own is not None else []
    if beyond:  # the config may be that of a larger job
        message = "roles.%s.ranks: rank %d does not exist in a world of %d: not recorded"
        log.warning(message, role, beyond[0], world)
    return found


def _actors(role: str, everyone: Sequence[Any], own: Role | None) -> list[Given]:
    replicas = [one for one in everyone if isinstance(one, Replica)]
    if replicas and own is not None:
        why = "names no engine, so a Replica cannot be recorded; name one, or attach its actor"
        raise ConfigError([f"roles.{role}: {why}"])
    if replicas:
        message = (
            "role %r is not in the config: its replicas are not recorded; write "
            "roles: {%s: {engine: NAME}} to know at least their queues"
        )
        log.warning(message, role, role)
    actors = [one for one in everyone if not isinstance(one, Replica)]
    for one in actors:
        if type(one).__name__ == "ClientActorHandle":  # of a driver at ray://
            why = "Ray Client is not supported; run the driver inside the cluster"
            raise ConfigError([f"attach: {role}: {why}"])
        if not _is_actor(one):
            raise ConfigError([f"attach: {role}: expected actors, got {shown(one)}"])
    if len({id_of(one) for one in actors}) < len(actors):
        raise ConfigError([f"attach: {role}: names an actor twice; list each one once"])
    return [
        Given(actor, Target(role, rank, len(actors)), (rank,)) for rank, actor in enumerate(actors)
    ]


def _is_actor(one: Any) -> bool:
    import ray

    return isinstance(one, ray.actor.ActorHandle)


def _replicas(role: str, everyone: Sequence[Any]) -> list[Given]:
    if any(map(_is_actor, everyone)):
        how = 'Replica(actor, via="actor:ATTRIBUTE")'
        raise ConfigError([f"attach: {role}: say how to reach its engine: {how}"])
    replicas = numbered(everyone)
    world = max((max(one.ranks or (0,)) for one in replicas), default=0) + 1
    found = []
    for number, one in enumerate(replicas):
        ranks = one.ranks or ()
        target = Target(role, ranks[0], world, replica=number, coordinates=one.coordinates)
        is_member = one.attribute is not None
        if is_member and not _is_actor(one.handle):
            what = shown(one.handle)
            raise ConfigError([f"attach: {role}: via {one.via}: expected an actor, got {what}"])
        found.append(Given(one.handle, target, ranks, is_member, one.attribute))
    return found
