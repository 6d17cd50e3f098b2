"""A rollout replica: its engine, and how the plugin of the engine reaches it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable


def _ranks(value: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(value)


@attrs.frozen(eq=False)
class Replica:
    """One rollout engine.

    *handle* is, by *via*: `object` the engine as its plugin wants it, an object of this process;
    `url` its address; `actor:NAME` an actor that keeps the engine in its attribute NAME.

    *ranks* are the global ranks it holds; by default replicas hold one after another, as many as
    tensor, pipeline and data parallel sizes in *coordinates* make: `{"tp": 2, "pp": 1, "dp": 1}`.
    """

    handle: Any
    via: str = attrs.field(default="object")
    ranks: tuple[int, ...] | None = attrs.field(default=None, converter=_ranks)
    coordinates: dict[str, int] = attrs.field(factory=dict)

    @via.validator
    def _check(self, _: Any, value: str) -> None:
        if value not in ("object", "url") and not value.startswith("actor:"):
            expected = "object, url or actor:ATTRIBUTE"
            raise ValueError(f"via: expected {expected}, got {value!r}")

    @property
    def attribute(self) -> str | None:
        """The attribute of the actor that holds the engine, if *via* names one."""
        kind, _, name = self.via.partition(":")
        return name if kind == "actor" else None

    @property
    def size(self) -> int:
        """The number of ranks it holds."""
        if self.ranks is not None:
            return len(self.ranks)
        return math.prod(self.coordinates.get(axis, 1) for axis in ("tp", "pp", "dp"))


def numbered(replicas: Iterable[Any]) -> list[Replica]:
    """Give each replica its ranks: those it names, or the next ones."""
    found = []
    following = 0
    for one in replicas:
        replica = one if isinstance(one, Replica) else Replica(one)
        ranks = replica.ranks or tuple(range(following, following + replica.size))
        following = max(ranks) + 1
        found.append(attrs.evolve(replica, ranks=ranks))
    return found
