"""A process that follows: another process opens its windows.

Its session is like any other, but has no steps and no schedule of its own. The leader's requests
come over whatever the fleet or the engine talks with.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import rlprof
from rlprof.config import check_config
from rlprof.types import DRIVER, Led
from rlprof_remote.leader import Pulse

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from rlprof import Off, Session, Window
    from rlprof.config import Config
    from rlprof_remote.leader import Leader

_SILENT_S = 60
"""After this long a leader on another host counts as silent, and its window is closed. A leader
writes a clock every ten seconds."""
_GONE_S = 600
"""After this long it counts as dead. A disk that is full for a while must not end a session."""
_LOOK_S = 5.0
"""How often a follower looks for its leader while no window is open."""
_LOOK_WORKER_S = 0.5
"""How often an engine's worker does: its leader waits for it when it closes."""
_LOOK_OPEN_S = 1.0
"""How often both do while a window is open."""


class Follower:
    """The session of a process that follows; call its methods on any thread."""

    def __init__(
        self, session: Session | Off, leader: Leader | None, look_s: float = _LOOK_S
    ) -> None:
        self.session = session
        self.config: Mapping[str, Any] | None = None
        """What an engine's worker was opened with; a request may ask for something else."""
        self._look_s = look_s
        self.orphaned: Callable[[], object] = self.close
        """Called on a thread of its own once the leader is gone; it must close the session."""
        self._pulse = None if leader is None else Pulse(leader)
        self._next_look = 0.0
        self._scopes: dict[Any, Any] = {}
        """The leader's open phases, by its own key for each."""
        self._window: Window | None = None
        self._edge = threading.RLock()
        if leader is not None and not isinstance(session, rlprof.Off):
            session.watchers.append(self._watch)

    def begin(
        self,
        window: Window,
        *,
        phases: tuple[str, ...] = (),
        config: Mapping[str, Any] | None = None,
        request: str = "",
    ) -> str:
        """Open *window*, and in it the *phases* that are open; return why not, or nothing.

        *config* is the run's with the options of a *request*, if the request has any.
        """
        session = self.session
        if isinstance(session, rlprof.Off):
            return "rlprof is off in this process; its log says why"
        if self._pulse is not None:
            self._pulse.heard()
        with self._edge:
            if self._window is not None:
                self.end(self._window, "the next window began")
            uses = None if config is None else _uses(session, config)
            self._window = window  # first: if strict lets a tool raise, others may record
            self._next_look = min(self._next_look, time.monotonic() + _LOOK_OPEN_S)
            why = session.open_window(window, uses, request)
            if why:
                self._window = None
                return why
            for name in phases:
                self.push(name, source=DRIVER)
            return ""

    def end(self, window: Window, reason: str = "end") -> str:
        """Close *window*; return why that cannot be, or nothing."""
        session = self.session
        with self._edge:
            if isinstance(session, rlprof.Off) or self._window != window:
                return f"{window.id} is not open"
            scopes, self._scopes, self._window = self._scopes, {}, None
            with ExitStack() as stack:  # last in, first out, and all of it even if strict raises
                stack.callback(session.close_window, reason)
                for scope in scopes.values():
                    stack.callback(scope.__exit__, None, None, None)
            return ""

    def push(self, name: str, step: int | None = None, key: Any = None, source: str = "") -> None:
        """Enter a phase that the leader calls *key*, in its *step*; note *source* with it."""
        session = self.session
        if step is not None and self._window is not None and not isinstance(session, rlprof.Off):
            session.go_to(step)
        scope: Any = session.phase(name)
        if source:
            scope.note("source", source)
        scope.__enter__()
        self._scopes[key] = scope

    def pop(self, key: Any = None) -> None:
        """Leave it; phases of threads and tasks end in any order."""
        scope = self._scopes.pop(key, None)
        if scope is not None:
            scope.__exit__(None, None, None)

    def close(self) -> None:
        """Close the session."""
        self.session.close()

    def _watch(self) -> None:
        """Close the window of a silent leader, and the session once the leader is gone.

        The helper thread calls it. It cannot close a session, which waits for this very thread.
        """
        now, window, pulse = time.monotonic(), self._window, self._pulse
        if pulse is None or now < self._next_look:
            return
        self._next_look = now + (self._look_s if window is None else _LOOK_OPEN_S)
        silence_s = pulse.silence_s()
        if window is not None and silence_s > _SILENT_S:
            self.end(window, "its driver has ended")
        if silence_s > _GONE_S:
            self._pulse = None
            threading.Thread(target=self.orphaned, name="rlprof-orphan", daemon=True).start()


def follow(
    config: Mapping[str, Any] | str | os.PathLike[str] | Config | None,
    *,
    run: str | os.PathLike[str],
    role: str,
    rank: int,
    world_size: int,
    coordinates: Mapping[str, int] | None = None,
    replica: int | None = None,
    worker: int | None = None,
    leader: Leader | None = None,
    any_thread: bool = False,
) -> Follower:
    """Open the session of a process whose windows another process opens.

    It joins the run folder *run* and records with the tools of *role* and *rank* in the config.
    *replica* is the number of its rollout replica, and *worker* its number in that replica. Once
    the *leader* has ended, the follower closes its open window. *any_thread*: windows open on
    another thread than the work, so tools that record a thread are refused.
    """
    led = Led(run, any_thread, replica, worker)
    session = rlprof.open(
        config, role=role, rank=rank, world_size=world_size, coordinates=coordinates, led=led
    )
    return Follower(session, leader, _LOOK_S if worker is None else _LOOK_WORKER_S)


def _uses(session: Session, config: Mapping[str, Any]) -> Any:
    role = session.target.role
    checked, tools = check_config(config, roles=[role])
    if role not in checked.roles:
        raise rlprof.ConfigError([f"roles: {role} is not among {', '.join(checked.roles)}"])
    return tools[role]
