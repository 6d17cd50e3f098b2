"""A process whose windows somebody else opens: the driver of a fleet, in another process.

It has the session every process has, but no steps and no schedule of its own; what it is told
comes over whatever the fleet talks with.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.errors import ConfigError
from rlprof.rundir import Leader, is_alive, last_event
from rlprof.session._off import Off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof.session._scope import Scope
    from rlprof.session._session import Session
    from rlprof.types import Window

_SILENT_S = 60
"""A leader on another host that has not written for so long has its window closed for it; it writes
a clock every ten seconds."""
_GONE_S = 600
"""After so long it is taken for dead. A disk that is full for a while must not end a session."""
_LOOK_S = 5.0
"""How often a follower looks after its leader while no window is open."""
LOOK_WORKER_S = 0.5
"""How often an engine's process does: its leader waits for it when it closes."""
_LOOK_OPEN_S = 1.0
"""And while one is; the helper thread comes by more often at its edges."""


class Pulse:
    """Whether a leader is still there, by what a process of any host can see of it.

    How long it has been silent is counted here, by the clock that never steps: the times of files
    are another machine's.
    """

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._file = Path(leader.manifest)
        self._size = -1
        self._heard = time.monotonic()
        self._has_ended = False

    def heard(self) -> None:
        """Know that it has just asked for something."""
        self._heard = time.monotonic()

    def silence_s(self) -> float:
        """Say for how long it has given no sign of life; for ever if it has ended."""
        alive = is_alive(self._leader.here)
        if alive is False or self._has_ended:
            return float("inf")
        try:
            size = self._file.stat().st_size
            if size != self._size:
                self._size = size
                self.heard()
                self._has_ended = last_event(self._file) == "ended"
        except OSError:  # not shared with this host: nothing can be said
            self.heard()
        if self._has_ended:  # its process may go on, and train
            return float("inf")
        return 0.0 if alive else time.monotonic() - self._heard


class Follower:
    """The session of a process that follows; all its methods may be called on any thread."""

    def __init__(
        self, session: Session | Off, leader: Leader | None, look_s: float = _LOOK_S
    ) -> None:
        self.session = session
        self.config: Mapping[str, Any] | None = None
        """What an engine's process was given to open it; a request may ask for something else."""
        self._look_s = look_s
        self.orphaned: Callable[[], object] = self.close
        """Called on a thread of its own once the leader is gone; it must close the session."""
        self._pulse = None if leader is None else Pulse(leader)
        self._next_look = 0.0
        self._scopes: dict[Any, Scope] = {}
        """Phases of the leader's that are open, by what it calls each."""
        self._window: Window | None = None
        self._edge = threading.RLock()
        if leader is not None and not isinstance(session, Off):
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

        *config* is the run's with the options of a *request*, if it has other ones.
        """
        session = self.session
        if isinstance(session, Off):
            return "rlprof is off in this process; its log says why"
        if self._pulse is not None:
            self._pulse.heard()
        with self._edge:
            if self._window is not None:
                self.end(self._window, "the next window began")
            uses = None if config is None else _uses(session, config)
            session.current_step = window.start_step
            self._window = window  # first: if strict lets a tool raise, others may record
            self._next_look = min(self._next_look, time.monotonic() + _LOOK_OPEN_S)
            why = session.record(window, uses, request)
            if why:
                self._window = session.current_step = None
                return why
            for name in phases:
                self.push(name)
            return ""

    def end(self, window: Window, reason: str = "end") -> str:
        """Close *window*; return why that cannot be, or nothing."""
        session = self.session
        with self._edge:
            if isinstance(session, Off) or self._window != window:
                return f"{window.id} is not open"
            scopes, self._scopes, self._window = self._scopes, {}, None
            with ExitStack() as stack:  # last in, first out, and all of it even if strict raises
                stack.callback(session.release, reason)
                stack.callback(setattr, session, "current_step", None)
                for scope in scopes.values():
                    stack.callback(scope.__exit__, None, None, None)
            return ""

    def push(self, name: str, step: int | None = None, key: Any = None) -> None:
        """Enter a phase of the leader's, which calls it *key*; *step* is the one it is in."""
        if step is not None and self._window is not None:
            self.session.go_to(step)  # type: ignore[union-attr]  # who is off has no window
        scope: Any = self.session.phase(name)
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
        """Close the window of a leader that is silent, and the session of one that is gone.

        Called by the helper thread, which cannot close a session: that waits for this very thread.
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


def _uses(session: Session, config: Mapping[str, Any]) -> Any:
    from rlprof.config import check_config

    role = session.means.target.role
    checked, tools = check_config(config, roles=[role])
    if role not in checked.roles:
        raise ConfigError([f"roles: {role} is not among {', '.join(checked.roles)}"])
    return tools[role]


def leader() -> Leader | None:
    """Describe this process, which has a session, to those that follow it."""
    from rlprof.session import _current

    session = _current.session
    if session is None:
        return None
    means = session.means
    name = session.scribe.name
    return Leader(means.here, str(means.run.path / "manifest" / f"{name}.jsonl"))
