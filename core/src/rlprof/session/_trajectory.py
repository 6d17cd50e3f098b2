"""A trajectory: what one sample goes through in an agent loop, from its prompt to its reward.

It is a span, and the spans inside it have its id. It hands that down as a span does its own id to
its children, by the scope around the running code: asyncio tasks and threads that run in a copy of
the context have it, and no others. So a span is always of the trajectory its parent is of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.session._scope import Scope, noted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from rlprof.session._scope import Host


class Trajectory(Scope):
    """One trajectory, from entry to exit; its methods return spans of it."""

    __slots__ = ()

    def __init__(
        self,
        session: Host,
        id: Any,  # noqa: A002 -- what it is
        attributes: Mapping[str, Any] | None,
    ) -> None:
        common = {"trajectory": id}
        own = {**noted(attributes), **common} if attributes else None
        super().__init__(session, "trajectory", own, is_phase=False)
        self.common = common

    def turn(self, n: Any, attributes: Mapping[str, Any] | None = None) -> Part:
        """Return the context manager around turn *n*."""
        return Part(self, "turn", attributes, turn=n)

    def request(self, attributes: Mapping[str, Any] | None = None) -> Part:
        """Return the context manager around a request to a rollout engine."""
        return Part(self, "request", attributes)

    def tool_call(self, name: Any, attributes: Mapping[str, Any] | None = None) -> Part:
        """Return the context manager around a call of the tool *name*."""
        return Part(self, "tool_call", attributes, tool=name)

    def reward(self, attributes: Mapping[str, Any] | None = None) -> Part:
        """Return the context manager around the computation of the reward."""
        return Part(self, "reward", attributes)


class Part(Scope):
    """A span of a trajectory, wherever it is entered: in another task, after the end of it."""

    __slots__ = ("path",)

    def __init__(
        self, path: Trajectory, name: str, attributes: Mapping[str, Any] | None, **said: Any
    ) -> None:
        common: dict[str, Any] = path.common or {}
        own = {**noted(attributes), **said, **common} if attributes else said or None
        super().__init__(path.session, name, own, is_phase=False)
        self.path = path
        self.common = common

    def __enter__(self) -> Self:
        super().__enter__()
        path, above = self.path, self.above
        if path.is_open and (above is None or above.common is not path.common):
            self.parent = path.id
        return self
