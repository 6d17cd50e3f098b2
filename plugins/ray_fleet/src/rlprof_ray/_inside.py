"""What the driver has called inside an actor, by `__ray_call__`: no change of the actor's class.

An actor that was restarted has none of what was set up in it; it says so, and is set up again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof import Follower, Leader
    from rlprof.types import Target, Window

_followers: dict[str, Follower] = {}
"""By run folder: what follows in this process."""


@attrs.frozen
class Answer:
    """What a member says of what it was asked."""

    why_not: str = ""
    """Why it could not be done; empty: it was."""
    pid: int = 0
    at_ns: int = 0
    """When it was done, by the member's wall clock."""
    seconds: float = 0.0
    is_new: bool = False
    """The process knows nothing of the run: it was restarted."""


@attrs.frozen
class Hello:
    """What an actor must know to follow."""

    config: Mapping[str, Any]
    run: str
    target: Target
    leader: Leader | None
    attribute: str | None = None
    """The attribute that is a rollout engine."""
    ranks: tuple[int, ...] = ()


@attrs.frozen
class Wanted:
    """A window as it is asked for."""

    window: Window
    phases: tuple[str, ...] = ()
    """Those of the driver that are open."""
    config: Mapping[str, Any] | None = None
    """The run's, with the options of a request."""
    request: str = ""


def after(actor: Any, _: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Call *function*; the argument before it is what Ray has waited for."""
    return function(actor, *args)


def enter(actor: Any, hello: Hello) -> Answer:
    """Open the session of this process."""
    import rlprof

    began = time.monotonic()
    target = hello.target
    if hello.run not in _followers:
        _followers[hello.run] = rlprof.follow(
            hello.config,
            run=hello.run,
            role=target.role,
            rank=target.rank,
            world_size=target.world_size,
            coordinates=target.coordinates,
            leader=hello.leader,
        )
    follower = _followers[hello.run]
    if hello.attribute is not None:
        engine: Any = actor
        for name in hello.attribute.split("."):
            engine = getattr(engine, name)
        follower.session.attach(
            engine,
            role=target.role,
            replica=target.replica or 0,
            ranks=hello.ranks,
            coordinates=target.coordinates,
        )
    off = "" if follower.session.run_dir is not None else "rlprof stays off there; see its log"
    return _answer(began, off)


def begin(actor: Any, run: str, wanted: Wanted) -> Answer:  # noqa: ARG001 -- Ray gives the actor
    """Open a window."""
    began = time.monotonic()
    follower = _followers.get(run)
    if follower is None:
        return attrs.evolve(_answer(began, "its process is a new one"), is_new=True)
    why = follower.begin(
        wanted.window, phases=wanted.phases, config=wanted.config, request=wanted.request
    )
    return _answer(began, why)


def end(actor: Any, run: str, window: Window, reason: str) -> Answer:  # noqa: ARG001
    """Close it."""
    began = time.monotonic()
    follower = _followers.get(run)
    return _answer(began, "its process is a new one" if follower is None
                   else follower.end(window, reason))  # fmt: skip


def phase(actor: Any, run: str, name: str | None) -> None:  # noqa: ARG001
    """Enter the phase *name*, or leave the one entered last."""
    follower = _followers.get(run)
    if follower is None:
        return
    if name is None:
        follower.pop()
    else:
        follower.push(name)


def clock(actor: Any, run: str) -> tuple[int, str, str]:  # noqa: ARG001
    """Read the wall clock; say whose it is, and what this process is called in the run."""
    follower = _followers[run]
    now = time.time_ns()
    means = follower.session.means  # type: ignore[union-attr]
    return now, means.here.boot_id, means.scribe.name


def leave(actor: Any, run: str) -> Answer:  # noqa: ARG001
    """Close the session, which waits for its exports."""
    began = time.monotonic()
    follower = _followers.pop(run, None)
    if follower is not None:
        follower.close()
    return _answer(began, "")


def _answer(began: float, why_not: str) -> Answer:
    import os

    return Answer(why_not, os.getpid(), time.time_ns(), round(time.monotonic() - began, 6))
