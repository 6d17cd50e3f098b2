"""`span` and `trajectory` of the session of this process, for code that has none at hand.

Deep in an agent loop there is no `prof`. Where there is no session, an object that does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.session import _current
from rlprof.session._off import NO_TRAJECTORY, NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.session._off import Nothing, NoTrajectory
    from rlprof.session._scope import Scope, Trajectory


def span(name: str, attributes: Mapping[str, Any] | None = None) -> Scope | Nothing:
    """Return the context manager (`with`, `async with`) around anything worth a line.

    It is `prof.span` of the session of this process. Without one it does nothing.
    """
    session = _current.session
    return NOTHING if session is None else session.span(name, attributes)


def trajectory(
    id: Any,  # noqa: A002 -- what it is
    attributes: Mapping[str, Any] | None = None,
) -> Trajectory | NoTrajectory:
    """Return the context manager (`with`, `async with`) around a trajectory of an agent loop.

    Every span inside it has the attribute `trajectory`: *id*, in whatever asyncio task or thread
    has its context, any number of trajectories at a time. What `as path` names has `path.turn(n)`,
    `path.request()`, `path.tool_call(name)` and `path.reward()`, which return spans of it. Without
    a session in this process all that does nothing.
    """
    session = _current.session
    return NO_TRAJECTORY if session is None else session.trajectory(id, attributes)
