"""A rollout replica: its engine, and how the plugin of the engine reaches it."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import CaptureError
from rlprof_ray._member import aside, in_short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ANSWER_S = 60


def _ranks(value: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(value)


@attrs.frozen(eq=False)
class Replica:
    """One rollout engine.

    *handle* is, by *via*: `object` the engine as its plugin wants it, an object of this process;
    `url` its address; `actor:NAME` an actor that keeps the engine in its attribute NAME;
    `methods` an actor whose methods are those the plugin calls.

    *ranks* are the global ranks it holds; by default replicas hold one after another, as many as
    tensor, pipeline and data parallel sizes in *coordinates* make: `{"tp": 2, "pp": 1, "dp": 1}`.
    """

    handle: Any
    via: str = attrs.field(default="object")
    ranks: tuple[int, ...] | None = attrs.field(default=None, converter=_ranks)
    coordinates: dict[str, int] = attrs.field(factory=dict)

    @via.validator
    def _check(self, _: Any, value: str) -> None:
        if value not in ("object", "url", "methods") and not value.startswith("actor:"):
            expected = "object, url, methods or actor:ATTRIBUTE"
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
        size = 1
        for axis in ("tp", "pp", "dp"):
            size *= self.coordinates.get(axis, 1)
        return size


class Methods:
    """Stands for an engine and calls the methods of an actor; each call has a deadline.

    A coroutine function there is one here, too.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._is_async: dict[str, bool] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._is_async:
            self._is_async[name] = _answer(aside(self._actor, _is_coroutine_function, name))
        if self._is_async[name]:
            return partial(asyncio.to_thread, self._call, name)
        return partial(self._call, name)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return _answer(getattr(self._actor, name).remote(*args, **kwargs))


def _is_coroutine_function(actor: Any, name: str) -> bool:
    return inspect.iscoroutinefunction(getattr(actor, name, None))


def _answer(ref: Any) -> Any:
    """Wait for an answer; raise the exception of the actor, or the reason why it is gone."""
    import ray

    try:
        return ray.get(ref, timeout=_ANSWER_S)
    except ray.exceptions.RayTaskError as exc:
        raise exc.cause from None
    except ray.exceptions.RayActorError as exc:
        raise CaptureError(in_short(exc)) from None


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
