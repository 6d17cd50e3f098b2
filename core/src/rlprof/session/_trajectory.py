"""`trajectory`: a span around the way of one sample, and the spans of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.session._scope import Scope, noted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.session._scope import Host


class Trajectory(Scope):
    """The way of one sample through an agent loop, from its prompt to its reward.

    It is a span, and the spans inside it have its id. They get it like the id of their parent, from
    the scope around the running code: only asyncio tasks and threads that run in a copy of the
    context have it. So a span always belongs to the trajectory of its parent. The methods of a
    trajectory return its spans.
    """

    __slots__ = ()

    def __init__(
        self,
        session: Host,
        id: Any,  # noqa: A002 -- what it is
        attributes: Mapping[str, Any] | None,
    ) -> None:
        common = {"trajectory": id}
        own = None if attributes is None else (noted(attributes) or {}) | common
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
    """A span of a trajectory, entered anywhere: in another task, or after its end."""

    __slots__ = ()

    def __init__(
        self, path: Trajectory, name: str, attributes: Mapping[str, Any] | None, **fields: Any
    ) -> None:
        common: dict[str, Any] = path.common or {}
        own = fields or None
        if attributes is not None:
            own = (noted(attributes) or {}) | fields | common
        super().__init__(path.session, name, own, is_phase=False)
        self.path = path
        self.common = common
