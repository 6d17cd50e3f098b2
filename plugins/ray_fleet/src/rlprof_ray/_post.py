"""A place in a role: the ranks, and the member that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rlprof.schedule import Demand
    from rlprof_ray._member import Member


@attrs.frozen
class Post:
    """A member in one role; an actor may have several roles."""

    ranks: tuple[int, ...]
    """The global ranks it holds."""
    member: Member
    is_chosen: bool
    """Whether the config records it; a request may still ask for another member."""

    def includes(self, demand: Demand | None) -> bool:
        """Whether it is recorded: by the config, or by a demand."""
        if demand is None:
            return self.is_chosen
        return demand.ranks is None or any(rank in demand.ranks for rank in self.ranks)
