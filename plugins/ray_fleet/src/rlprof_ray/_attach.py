"""What a driver gives to `attach`, as the members and engines of its roles, checked."""

from __future__ import annotations

from inspect import getattr_static
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.types import Target
from rlprof_ray._member import is_ordered
from rlprof_ray._replica import Methods, numbered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlprof.config import Role, ToolUse


@attrs.frozen(eq=False)
class Given:
    """One actor or replica as it stands in a role."""

    handle: Any
    target: Target
    ranks: tuple[int, ...]
    is_member: bool = True
    """False: an engine that the driver reaches by itself."""
    attribute: str | None = None
    """The attribute of the actor that is the engine."""


def listed(role: str, given: Sequence[Any], own: Role | None) -> list[Given]:
    """Give everyone its place: actors in their order, replicas by the ranks they hold."""
    if own is None or own.engine is None:
        return [
            Given(actor, Target(role, rank, len(given)), (rank,))
            for rank, actor in enumerate(given)
        ]
    replicas = numbered(given)
    world = max((max(one.ranks or (0,)) for one in replicas), default=0) + 1
    found = []
    for number, one in enumerate(replicas):
        ranks = one.ranks or ()
        target = Target(role, ranks[0], world, replica=number, coordinates=one.coordinates)
        handle = Methods(one.handle) if one.via == "methods" else one.handle
        is_member = one.attribute is not None
        found.append(Given(handle, target, ranks, is_member, one.attribute))
    return found


def faults(role: str, found: Sequence[Given], own: Role, uses: Iterable[ToolUse]) -> list[str]:
    """List what cannot work: ranks that nobody holds, tools that an actor has no thread for."""
    world = max((one.target.world_size for one in found), default=0)
    told = []
    beyond = [rank for rank in own.ranks or () if rank >= world]
    if beyond:
        among = f"{world} rank{'s' if world != 1 else ''}"
        told.append(f"roles.{role}.ranks: rank {beyond[0]} does not exist among {among}")
    bound = [use.name for use in uses if getattr_static(use.plugin, "runs_on", "") == "thread"]
    for one in found if bound else ():
        chosen = any(own.includes(rank) for rank in one.ranks)
        if one.is_member and chosen and not is_ordered(one.handle):
            told.append(
                f"roles.{role}.tool: {bound[0]} records the thread it is started on, and "
                f"{one.target} is an async or threaded actor, where windows are opened beside its "
                "work; use a tool that records the process, or make it a plain actor, whose calls "
                "come one by one"
            )
            break
    return told
