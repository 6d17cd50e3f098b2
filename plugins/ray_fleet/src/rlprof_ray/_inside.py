"""What the driver has called inside an actor, by `__ray_call__`: no change of the actor's class.

An actor that was restarted has none of what was set up in it; it says so, and is set up again.
"""

from __future__ import annotations

import logging
import pickle
import time
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof import Follower, Leader
    from rlprof.types import Target, Window
    from rlprof_run import Place

log = logging.getLogger("rlprof")

_followers: dict[str, Follower] = {}
"""By run folder: what follows in this process."""

_refused: dict[str, str] = {}
"""By run folder: why this process does not follow."""

_COME_BY_S = 60.0
"""How long the thread that works is waited for, to stop what must be stopped there."""


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
    place: Place | None = None
    """Where it writes, if that is not the driver's run folder."""
    process: str = ""
    """What its files are called."""
    worker: str = ""
    """Ray's id of its process."""
    why_full: str = ""
    """Why its process opens no further window, whatever it is asked."""


@attrs.frozen
class Hello:
    """What an actor must know to follow."""

    config: Mapping[str, Any]
    run: str
    """The driver's run folder, by which all calls name the run."""
    target: Target
    leader: Leader | None
    attribute: str | None = None
    """The attribute that is a rollout engine."""
    ranks: tuple[int, ...] = ()
    any_thread: bool = False
    """Windows are opened on a thread beside those that work."""
    node_dir: str | None = None
    """A folder of each node; None: members write to the path of the driver's run folder."""
    part: str = ""
    """The run, as a path in there."""


@attrs.frozen
class Wanted:
    """A window as it is asked for."""

    window: Window
    phases: tuple[str, ...] = ()
    """Those of the driver that are open."""
    config: Mapping[str, Any] | None = None
    """The run's, with the options of a request."""
    request: str = ""


def do(actor: Any, how: bytes, after: bytes | None = None) -> bytes:  # noqa: ARG001 -- see below
    """Do what the driver has written down; *after* is what Ray has waited for before it."""
    function, args = pickle.loads(how)  # noqa: S301 -- it comes as Ray's own calls do
    return pickle.dumps(function(actor, *args))


def enter(actor: Any, hello: Hello) -> Answer:
    """Open the session of this process."""
    import rlprof

    began = time.monotonic()
    target = hello.target
    engine = None if hello.attribute is None else _engine(actor, hello)
    if hello.run not in _followers:
        others = [run for run, other in _followers.items() if other.session.run_dir is not None]
        if others:
            _refused[hello.run] = f"it is recorded by another fleet: {others[0]}"
            return _answer(began, _refused[hello.run])
        try:
            _followers[hello.run] = rlprof.follow(
                hello.config,
                run=_folder(hello),
                role=target.role,
                rank=target.rank,
                world_size=target.world_size,
                coordinates=target.coordinates,
                replica=target.replica,
                leader=hello.leader,
                any_thread=hello.any_thread,
            )
        except Exception as exc:
            _refused[hello.run] = f"it does not follow: {exc}"
            raise
        _refused.pop(hello.run, None)
        _followers[hello.run].orphaned = partial(_close_alone, hello.run)
    follower = _followers[hello.run]
    if hello.attribute is not None:
        follower.session.attach(
            engine,
            role=target.role,
            replica=target.replica or 0,
            ranks=hello.ranks,
            loop=_own_loop(),
            coordinates=target.coordinates,
        )
    folder = follower.session.run_dir
    off = "" if folder is not None else "rlprof stays off there; see its log"
    return attrs.evolve(
        _answer(began, off),
        place=_place(hello, folder),
        process="" if off else follower.session.name,  # type: ignore[union-attr]
        worker=_worker(),
    )


def _engine(actor: Any, hello: Hello) -> Any:
    """Find the engine in its actor."""
    found = actor
    for name in str(hello.attribute).split("."):
        if not hasattr(found, name):
            reason = f"{type(found).__name__} has no attribute {name!r}"
            _refused[hello.run] = f"via actor:{hello.attribute}: {reason}"
            raise AttributeError(_refused[hello.run])
        found = getattr(found, name)
    return found


def _own_loop() -> Any:
    """Return the event loop of an async actor, which its engine belongs to; None: it has none."""
    import ray

    core = ray._private.worker.global_worker.core_worker  # noqa: SLF001 -- Ray says it nowhere else
    if not core.current_actor_is_asyncio():
        return None
    constructor = SimpleNamespace(function_name="__init__")  # which the default loop has run
    try:
        return core.get_event_loop(constructor, "")[0]
    except Exception as exc:  # another version of Ray: hooks get a loop of their own
        log.warning("the event loop of this actor was not found: %s", exc)
        return None


def _folder(hello: Hello) -> Path:
    """Say where this process writes."""
    from pathlib import Path

    if hello.node_dir is None:
        return Path(hello.run)
    return Path(hello.node_dir, _node()[:8], hello.part)


def _place(hello: Hello, folder: Path | None) -> Place | None:
    """Name the folder if it is on this node alone: by config, or as no file system is shared."""
    import socket

    if folder is None or (hello.node_dir is None and _is_shared(hello, folder)):
        return None
    from rlprof_run import Place

    return Place(_node(), socket.gethostname(), str(folder))


def _is_shared(hello: Hello, folder: Path) -> bool:
    """Whether the driver writes to *folder*, too, as far as can be seen."""
    import json
    from pathlib import Path

    from rlprof.rundir import read_regular

    if hello.leader is None or Path(hello.leader.manifest).exists():
        return True
    try:
        owner = json.loads(read_regular(folder / "run.json"))["owner"]
    except (OSError, ValueError, KeyError):
        return False
    return bool(owner["process"] == attrs.asdict(hello.leader.here))


def _node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def _worker() -> str:
    import ray

    return str(ray.get_runtime_context().get_worker_id())


def begin(actor: Any, run: str, wanted: Wanted) -> Answer:  # noqa: ARG001 -- Ray gives the actor
    """Open a window."""
    began = time.monotonic()
    follower = _followers.get(run)
    if follower is None:
        return attrs.evolve(_answer(began, _why_none(run)), is_new=True)
    why = follower.begin(
        wanted.window, phases=wanted.phases, config=wanted.config, request=wanted.request
    )
    return attrs.evolve(_answer(began, why), why_full=follower.session.why_full)


def end(actor: Any, run: str, window: Window, reason: str) -> Answer:  # noqa: ARG001
    """Close it."""
    began = time.monotonic()
    follower = _followers.get(run)
    return _answer(began, _why_none(run) if follower is None else follower.end(window, reason))


def push(actor: Any, run: str, name: str, step: int | None, key: int) -> None:  # noqa: ARG001
    """Enter the phase *name* of *step*."""
    follower = _followers.get(run)
    if follower is not None:
        follower.push(name, step, key)


def pop(actor: Any, run: str, key: int) -> None:  # noqa: ARG001
    """Leave it."""
    follower = _followers.get(run)
    if follower is not None:
        follower.pop(key)


def clock(actor: Any, run: str) -> tuple[int, str, str] | None:  # noqa: ARG001
    """Read the wall clock; say whose it is, and what this process is called in the run."""
    now = time.time_ns()
    follower = _followers.get(run)
    if follower is None or follower.session.run_dir is None:
        return None
    session: Any = follower.session
    return now, session.here.boot_id, session.name


def leave(actor: Any, run: str) -> Answer:  # noqa: ARG001
    """Close the session, which waits for its exports."""
    began = time.monotonic()
    follower = _followers.get(run)
    if follower is not None:
        try:
            follower.close()
        finally:
            _followers.pop(run, None)
    return _answer(began, "")


def stop_here(actor: Any, run: str) -> None:  # noqa: ARG001
    """Stop, on the thread that works, what waits for it; called by the actor itself."""
    follower = _followers.get(run)
    if follower is not None:
        follower.session.close_window("its driver has ended")  # type: ignore[union-attr]


def _close_alone(run: str) -> None:
    """Close a session whose driver is gone, on a thread of its own."""
    follower = _followers[run]
    try:
        if follower.session.is_recording:  # its tool must be stopped on the thread that works
            import ray

            me = ray.get_runtime_context().current_actor
            ray.wait([me.__ray_call__.remote(stop_here, run)], timeout=_COME_BY_S)
    except Exception as exc:  # Ray is going, too
        log.debug("could not call the thread that works: %s", exc)
    follower.close()
    _followers.pop(run, None)


def _why_none(run: str) -> str:
    return _refused.get(run, "its process is a new one")


def _answer(began: float, why_not: str) -> Answer:
    import os

    return Answer(why_not, os.getpid(), time.time_ns(), round(time.monotonic() - began, 6))
