"""The arguments of `attach`, checked, as the members and engines of their roles."""

from __future__ import annotations

import logging
from contextlib import suppress
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import ConfigError, shown
from rlprof.types import Target
from rlprof_ray._loop import is_async
from rlprof_ray._member import aside, is_ordered
from rlprof_ray._replica import Replica, numbered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlprof.config import Role, ToolUse

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
    everyone = _everyone(role, given)
    if own is not None and own.engine is not None:
        return _replicas(role, everyone)
    replicas = [one for one in everyone if isinstance(one, Replica)]
    if replicas and own is not None:
        why = "names no engine, so a Replica cannot be recorded; name one, or attach its actor"
        raise ConfigError([f"roles.{role}: {why}"])
    if replicas:
        log.warning("role %r is not in the config: its replicas are not recorded", role)
    actors = [one for one in everyone if not isinstance(one, Replica)]
    for one in actors:
        if not _is_actor(one):
            raise ConfigError([f"attach: {role}: expected actors, got {shown(one)}"])
    return [
        Given(actor, Target(role, rank, len(actors)), (rank,)) for rank, actor in enumerate(actors)
    ]


def _everyone(role: str, given: Any) -> list[Any]:
    if isinstance(given, Replica) or _is_actor(given):
        raise ConfigError([f"attach: {role}: expected a list; write {role}=[...]"])
    try:
        return list(given)
    except TypeError:
        raise ConfigError([f"attach: {role}: expected a list, got {shown(given)}"]) from None


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


def faults(
    role: str, found: Sequence[Given], own: Role, uses: Iterable[ToolUse], within_s: float
) -> list[str]:
    """List what cannot work: ranks without a member, tools for which an actor has no thread."""
    world = max((one.target.world_size for one in found), default=0)
    told = []
    beyond = [rank for rank in own.ranks or () if rank >= world]
    if beyond:
        among = f"{world} rank{'s' if world != 1 else ''}"
        told.append(f"roles.{role}.ranks: rank {beyond[0]} does not exist among {among}")
    bound = [use.name for use in uses if getattr_static(use.plugin, "runs_on", "") == "thread"]
    chosen = [one for one in found if any(own.includes(rank) for rank in one.ranks)]
    beside = _beside(chosen, within_s) if bound else None
    if beside is not None:
        told.append(
            f"roles.{role}.tool: {bound[0]} records the thread it is started on, but windows of "
            f"{beside.target} open on another thread, because it is threaded or has an engine; use "
            "a tool that records the process, or a plain actor, whose calls run one by one"
        )
    return told


def _beside(found: Sequence[Given], within_s: float) -> Given | None:
    """Return a member whose windows open on another thread; None: none that answered in time."""
    import ray

    unordered = [one for one in found if one.is_member and not is_ordered(one.handle)]
    asked = {aside(one.handle, is_async): one for one in unordered if one.attribute is None}
    there, _ = ray.wait(list(asked), num_returns=len(asked), timeout=within_s) if asked else ([], 0)
    beside = [one for one in unordered if one.attribute is not None]
    for ref in there:
        with suppress(ray.exceptions.RayError):  # it is dead; opening its session will report that
            beside += [] if ray.get(ref) else [asked[ref]]
    return min(beside, key=unordered.index, default=None)
