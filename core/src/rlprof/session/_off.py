"""Off: the session of a process without a config; empty methods, chosen once, nothing allocated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self

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
