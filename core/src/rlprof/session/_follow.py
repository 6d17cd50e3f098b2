"""A process whose windows somebody else opens: the driver of a fleet, in another process.

It has the session every process has, but no steps and no schedule of its own; what it is told
comes over whatever the fleet talks with.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import ConfigError
from rlprof.rundir import Here, is_alive
from rlprof.session._off import Off

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.session._scope import Scope
    from rlprof.session._session import Session
    from rlprof.types import Window

_SILENT_S = 60
"""A leader on another host that has not written for so long is taken for dead; it writes a clock
every ten seconds."""


@attrs.frozen
class Leader:
    """Who opens the windows of a fleet."""

    here: Here
    manifest: str
    """The file it writes to, which tells on other hosts whether it lives."""

    @property
    def has_ended(self) -> bool:
        """Whether nobody is left to close a window."""
        alive = is_alive(self.here)
        if alive is not None:
            return not alive
        try:
            return time.time() - Path(self.manifest).stat().st_mtime > _SILENT_S
        except OSError:  # not shared with this host: nothing can be said
            return False


class Follower:
    """The session of a process that follows; all its methods may be called on any thread."""

    def __init__(self, session: Session | Off, leader: Leader | None) -> None:
        self.session = session
        self._leader = leader
        self._scopes: list[Scope] = []
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
        with self._edge:
            if self._window is not None:
                self.end(self._window, "the next window began")
            uses = None if config is None else _uses(session, config)
            session.current_step = window.start_step
            why = session.record(window, uses, request)
            if why:
                session.current_step = None
                return why
            self._window = window
            for name in phases:
                self.push(name)
            return ""

    def end(self, window: Window, reason: str = "end") -> str:
        """Close *window*; return why that cannot be, or nothing."""
        session = self.session
        with self._edge:
            if isinstance(session, Off) or self._window != window:
                return f"{window.id} is not open"
            while self._scopes:
                self.pop()
            self._window = None
            session.current_step = None
            session.release(reason)
            return ""

    def push(self, name: str) -> None:
        """Enter a phase of the leader's."""
        scope: Any = self.session.phase(name)
        scope.__enter__()
        self._scopes.append(scope)

    def pop(self) -> None:
        """Leave it."""
        if self._scopes:
            self._scopes.pop().__exit__(None, None, None)

    def close(self) -> None:
        """Close the session."""
        self.session.close()

    def _watch(self) -> None:
        """Close a window whose leader has ended; called by the helper thread."""
        window, leader = self._window, self._leader
        if window is not None and leader is not None and leader.has_ended:
            self.end(window, "its driver has ended")


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
