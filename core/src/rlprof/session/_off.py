"""Off: the session of a process without a config; empty methods, chosen once, nothing allocated.

`rlprof.span` and `rlprof.trajectory` are those of the open session, or do nothing like Off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rlprof.session import _current

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self

    from rlprof.session._scope import Scope
    from rlprof.session._trajectory import Trajectory

T = TypeVar("T")


class Nothing:
    """The result of `phase` and `span` when off: one object for all."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, exc: object, trace: object) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, exc: object, trace: object) -> None:
        return None

    def note(self, key: str, value: Any) -> None:
        return None


class NoTrajectory(Nothing):
    """The result of `trajectory` when off: one object for all."""

    __slots__ = ()

    def turn(self, n: Any, attributes: Mapping[str, Any] | None = None) -> Nothing:
        return NOTHING

    def request(self, attributes: Mapping[str, Any] | None = None) -> Nothing:
        return NOTHING

    def tool_call(self, name: Any, attributes: Mapping[str, Any] | None = None) -> Nothing:
        return NOTHING

    def reward(self, attributes: Mapping[str, Any] | None = None) -> Nothing:
        return NOTHING


NOTHING = Nothing()
NO_TRAJECTORY = NoTrajectory()


class Off:
    """A session that does nothing; every method that a training loop calls is here."""

    __slots__ = ()

    run_dir = None
    is_recording = False
    why_full = ""

    def steps(self, steps: Iterable[T]) -> Iterable[T]:
        """Return *steps* unchanged."""
        return steps

    def step(self, step: int) -> None:
        """Do nothing."""

    def phase(self, name: str) -> Nothing:
        """Return the shared object that does nothing."""
        return NOTHING

    def span(self, name: str, attributes: Mapping[str, Any] | None = None) -> Nothing:
        """Return the shared object that does nothing."""
        return NOTHING

    def trajectory(self, id: Any, attributes: Mapping[str, Any] | None = None) -> NoTrajectory:  # noqa: A002 -- what it is
        """Return the shared object that does nothing."""
        return NO_TRAJECTORY

    def minibatch(self) -> None:
        """Do nothing."""

    def figures(self) -> dict[str, float]:
        """Return no figures."""
        return {}

    def attach(self, handle: Any, **how: Any) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Off:
        return self

    def __exit__(self, kind: object, exc: object, trace: object) -> None:
        return None


def span(name: str, attributes: Mapping[str, Any] | None = None) -> Scope | Nothing:
    """Return the context manager (`with`, `async with`) around anything worth a slice.

    It is `prof.span` of the session of this process. Without one it does nothing.
    """
    found = _current.session  # once: another thread may close it
    return NOTHING if found is None else found.span(name, attributes)


def trajectory(
    id: Any,  # noqa: A002 -- what it is
    attributes: Mapping[str, Any] | None = None,
) -> Trajectory | NoTrajectory:
    """Return the context manager (`with`, `async with`) around a trajectory of an agent loop.

    Every span inside it has the attribute `trajectory`: *id*, in any asyncio task or thread with
    its context, and any number of trajectories may run at a time. With `as path`, the methods
    `path.turn(n)`, `path.request()`, `path.tool_call(name)` and `path.reward()` return its spans.
    Without a session in this process, all of these do nothing.
    """
    found = _current.session
    return NO_TRAJECTORY if found is None else found.trajectory(id, attributes)
