"""`rlprof.span` and `rlprof.trajectory`: those of the session of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.session import _current
from rlprof.session._off import NO_TRAJECTORY, NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.session._off import Nothing, NoTrajectory
    from rlprof.session._scope import Scope
    from rlprof.session._trajectory import Trajectory


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
