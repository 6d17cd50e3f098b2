"""Functions that the driver calls inside an actor, by `__ray_call__`, without changing its class.

A restarted actor has lost its setup; it says so, and is set up again.
"""

from __future__ import annotations

import logging
import pickle
import time
from functools import partial
from itertools import chain
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any

from attrs import asdict

from rlprof.types import DRIVER
from rlprof_ray._loop import on_loop, own_loop
from rlprof_ray._messages import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof import Follower
    from rlprof.types import Window
    from rlprof_ray._messages import Hello
    from rlprof_run import Place

log = logging.getLogger("rlprof")

_followers: dict[str, Follower] = {}
"""Run folder → the follower in this process."""

_refused: dict[str, str] = {}
"""Run folder → why this process does not follow."""

GROUP = "__ray_concurrency_group__"
"""The attribute that `ray.method(concurrency_group=...)` gives a method."""
_opened: dict[str, int] = {}
"""Run folder → when its last window had opened, by the wall clock."""
_MOMENT_NS = 20_000_000
"""If an ordered actor closes a window sooner, it made no call of note in it."""
_TOO_LATE = "it began after its phase had ended"
_COME_BY_S = 60.0
"""The longest wait for the working thread, to stop tools that must be stopped there."""


def do(actor: Any, how: bytes, after: bytes | None = None) -> bytes:  # noqa: ARG001 -- see below
    """Make the call that the driver pickled; Ray has waited for *after* before."""
    function, args = pickle.loads(how)  # noqa: S301 -- it comes as Ray's own calls do
    return pickle.dumps(function(actor, *args))


def do_at_work(actor: Any, how: bytes, after: bytes | None) -> bytes:  # noqa: ARG001
    """Make it on the actor's event loop, if it has one: its calls run there."""
    loop = own_loop()
    return do(actor, how) if loop is None else on_loop(loop, partial(do, actor, how)).result()


def enter(actor: Any, hello: Hello) -> Answer:
    """Open the session of this process."""
    import rlprof

    began = time.monotonic()
    run, target = hello.run, hello.target
    has_groups = _has_groups(actor)
    is_ordered = hello.is_ordered and not has_groups
    is_on_loop = not is_ordered and hello.attribute is None and own_loop() is not None
    others = [one.session.run_dir for key, one in _followers.items() if key != run]
    if any(others) and run not in _followers:
        _refused[run] = f"it is recorded by another fleet: {next(filter(None, others))}"
        return _answer(began, _refused[run])
    try:
        engine = None if hello.attribute is None else _engine(actor, hello.attribute)
        if run not in _followers:
            _followers[run] = rlprof.follow(
                hello.config, run=_folder(hello), role=target.role, rank=target.rank,
                world_size=target.world_size, coordinates=target.coordinates,
                replica=target.replica, leader=hello.leader,
                any_thread=not (is_ordered or is_on_loop),
            )  # fmt: skip
    except Exception as exc:
        _refused[run] = f"it does not follow: {exc}"
        raise
    _refused.pop(run, None)
    follower = _followers[run]
    follower.orphaned = partial(_close_alone, run)
    if hello.attribute is not None:
        follower.session.attach(
            engine, role=target.role, replica=target.replica or 0, ranks=hello.ranks,
            loop=own_loop(), coordinates=target.coordinates,
        )  # fmt: skip
    folder = follower.session.run_dir
    if folder is None:
        return _answer(began, "rlprof stays off there; see its log", is_on_loop=is_on_loop)
    session: Any = follower.session
    return _answer(
        began, "", place=_place(hello, folder), process=session.name,
        worker=str(_context().get_worker_id()), is_on_loop=is_on_loop, has_groups=has_groups,
    )  # fmt: skip


def _has_groups(actor: Any) -> bool:
    """Whether methods have their own threads; a handle does not know it."""
    methods = chain.from_iterable(vars(cls).values() for cls in type(actor).__mro__)
    return any(isinstance(one, FunctionType) and GROUP in vars(one) for one in methods)


def _engine(actor: Any, name: str) -> Any:
    try:
        return attrgetter(name)(actor)
    except AttributeError as exc:
        raise AttributeError(f"{exc}; correct via='actor:{name}'") from None


def _folder(hello: Hello) -> Path:
    """Return the folder in which this process writes."""
    from pathlib import Path

    if hello.node_dir is None:
        return Path(hello.run)
    return Path(hello.node_dir, _context().get_node_id()[:8], hello.part)


def _place(hello: Hello, folder: Path) -> Place | None:
    """Name the folder if only this node has it: by config, or for lack of a shared file system."""
    import socket
    from pathlib import Path

    is_shared = hello.leader is None or Path(hello.leader.manifest).exists()
    if hello.node_dir is None and is_shared:
        return None
    from rlprof_run import Place

    return Place(str(_context().get_node_id()), socket.gethostname(), str(folder))


def _context() -> Any:
    import ray

    return ray.get_runtime_context()


def begin(
    actor: Any, run: str, window: Window,  # noqa: ARG001 -- Ray gives the actor
    config: Mapping[str, Any] | None, request: str,
) -> Answer:  # fmt: skip
    """Open a window."""
    began = time.monotonic()
    follower = _followers.get(run)
    if follower is None:
        return _answer(began, _why_none(run), is_new=True)
    phases = () if window.phase is None else (window.phase,)
    why = follower.begin(window, phases=phases, config=config, request=request)
    if not why:
        _opened[run] = time.time_ns()
    return _answer(began, why, why_full=follower.session.why_full)


def end(
    actor: Any, run: str, window: Window, reason: str, *,  # noqa: ARG001
    over_ns: int | None, is_ordered: bool,
) -> Answer:  # fmt: skip
    """Close it; it fails if it began after *over_ns*, when its phase had ended.

    None: it began before, or nobody knows. Calls of an ordered actor may run after the driver's
    phase; then the window holds them.
    """
    began, now_ns = time.monotonic(), time.time_ns()
    follower, opened_ns = _followers.get(run), _opened.pop(run, 0)
    if follower is None:
        return _answer(began, _why_none(run))
    is_late = over_ns is not None and opened_ns > over_ns
    if is_late and not (is_ordered and now_ns - opened_ns > _MOMENT_NS):
        _fail(follower.session, window)
    return _answer(began, follower.end(window, reason))


def _fail(session: Any, window: Window) -> None:
    """Note that *window* holds nothing of its phase."""
    for track in session.tracks:
        opened = track.opened
        if opened is not None and opened.window == window:
            key: dict[str, Any] = {} if track.link is None else {"target": asdict(track.target)}
            key |= {"window": asdict(window), "hook": "start", "error": _TOO_LATE}
            for tool in opened.tools:
                session.write("failed", **key, tool=tool)


def push(actor: Any, run: str, name: str, step: int | None, key: int) -> None:  # noqa: ARG001
    """Enter the phase *name* of *step*."""
    follower = _followers.get(run)
    if follower is not None:
        follower.push(name, step, key, source=DRIVER)


def pop(actor: Any, run: str, key: int) -> None:  # noqa: ARG001
    """Leave it."""
    follower = _followers.get(run)
    if follower is not None:
        follower.pop(key)


def clock(actor: Any, run: str) -> tuple[int, str, str] | None:  # noqa: ARG001
    """Read the wall clock; return also its host, and the name of this process in the run."""
    now = time.time_ns()
    follower = _followers.get(run)
    if follower is None or follower.session.run_dir is None:
        return None
    session: Any = follower.session
    return now, session.here.boot_id, session.name


def ping(actor: Any) -> Answer:  # noqa: ARG001
    """Answer, for the actor is free."""
    return Answer(at_ns=time.time_ns())


def leave(actor: Any, run: str) -> Answer:  # noqa: ARG001
    """Close the session, which waits for its exports."""
    began = time.monotonic()
    follower = _followers.get(run)
    if follower is None:
        return _answer(began, "")
    try:
        follower.close()
    finally:
        _followers.pop(run, None)
    return _answer(began, "", failed=tuple(getattr(follower.session, "failed", ())))


def stop_here(actor: Any, run: str) -> None:  # noqa: ARG001
    """Stop, on the working thread, the tools that wait for it; called by the actor itself."""
    follower = _followers.get(run)
    if follower is not None:
        follower.session.close_window("its driver has ended")  # type: ignore[union-attr]


def _close_alone(run: str) -> None:
    """Close a session whose driver is gone, on a separate thread."""
    follower = _followers[run]
    try:
        if follower.session.is_recording:  # its tool must be stopped on the working thread
            _come_by(run)
    except Exception as exc:  # Ray is going, too
        log.debug("could not call the working thread: %s", exc)
    follower.close()
    _followers.pop(run, None)


def _come_by(run: str) -> None:
    """Close the window on the working thread."""
    import ray

    loop = own_loop()
    if loop is not None:
        on_loop(loop, partial(stop_here, None, run)).result(_COME_BY_S)
        return
    me = _context().current_actor
    ray.wait([me.__ray_call__.remote(stop_here, run)], timeout=_COME_BY_S)


def _why_none(run: str) -> str:
    return _refused.get(run, "its process is a new one")


def _answer(began: float, why_not: str, **more: Any) -> Answer:
    return Answer(why_not, time.time_ns(), round(time.monotonic() - began, 6), **more)
