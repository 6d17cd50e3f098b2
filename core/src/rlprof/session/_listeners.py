"""Listeners: plugins that hear of the events of a session, each on a separate thread.

The working thread leaves an event in memory; the helper thread wakes the listeners once a second.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from rlprof.plugins import hooks
from rlprof.session._boundary import Guard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pluggy import PluginManager

    from rlprof.plugins import Hooks
    from rlprof.session._scribe import Scribe

_AT_ONCE = ("engine_attached", "window_opened")
"""Hooks that are called at once: the next event may be short."""
_MOST = 10_000
"""Events that wait for a listener; more are dropped."""
_OPEN_S = 1.0
"""How long opening a session waits for a listener to hear of it."""
_CLOSE_S = 5.0
"""How long closing it waits for all of them."""


class Listeners:
    """The listeners of one session; none of them until it is open."""

    def __init__(
        self, loaded: Mapping[str, type[Any]], manager: PluginManager, scribe: Scribe
    ) -> None:
        self._loaded = loaded
        self._manager = manager
        self._scribe = scribe
        self._all: tuple[_Listening, ...] = ()

    def __contains__(self, hook: str) -> bool:
        """Whether any of them has *hook*."""
        return any(hook in one.hooks for one in self._all)

    def open(self, session: object) -> None:
        """Start them, and let each hear that *session* is open."""
        self._all = tuple(
            _Listening(name, hooks(one(), self._manager), session, self._scribe)
            for name, one in self._loaded.items()
        )
        for one in self._all:
            one.hear("session_opened", {})
        self.wake()
        self.settle()

    def settle(self) -> None:
        """Wait until each has heard its events, but not for a slow listener."""
        for one in self._all:
            one.idle.wait(_OPEN_S)

    def hear(self, hook: str, **facts: Any) -> None:
        """Leave an event for each, from any thread."""
        for one in self._all:
            one.hear(hook, facts)

    def wake(self) -> None:
        """Let each hear its events, and call `tick`."""
        for one in self._all:
            one.idle.clear()
            one.wake.set()

    def close(self) -> None:
        """Let each hear its events, and end."""
        for one in self._all:
            one.is_ending = True
        self.wake()
        for one in self._all:
            if not one.ended.wait(_CLOSE_S / len(self._all)):
                one.report(f"has not returned from {one.hook or 'a hook'} and is left alone")
        self._all = ()

    def forget(self) -> None:
        """Stop hearing: this is a forked child."""
        self._all = ()


class _Listening:
    """One listener, and its thread."""

    def __init__(self, name: str, found: Hooks, session: object, scribe: Scribe) -> None:
        self.wake, self.idle, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.is_ending = False
        self._name = name
        self._session = session
        self._scribe = scribe
        self.hooks = found
        self._guards = {hook: Guard(scribe.boundary, f"{name}.{hook}") for hook in found}
        self._events: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._dropped = 0
        self.hook = ""
        """The hook that it is in."""
        threading.Thread(target=self._live, name=f"rlprof-{name}", daemon=True).start()

    def hear(self, hook: str, facts: Mapping[str, Any]) -> None:
        """Leave an event."""
        if hook not in self.hooks:
            return
        if len(self._events) < _MOST or hook == "session_closing":
            self._events.append((hook, facts))
            if hook in _AT_ONCE:
                self.wake.set()
        else:
            self._dropped += 1

    def _live(self) -> None:
        try:
            is_ending = False
            while not is_ending:
                self.wake.wait()
                self.wake.clear()
                is_ending = self.is_ending  # first: what was left until then is heard
                while self._events:
                    self._call(*self._events.popleft())
                self._report_dropped()
                if not is_ending:
                    self._call("tick", {})
                self.idle.set()
        finally:
            self.ended.set()

    def _call(self, hook: str, facts: Mapping[str, Any]) -> None:
        if hook not in self.hooks:
            return
        self.hook = hook
        with self._guards[hook]:
            self.hooks.bound(hook, session=self._session, **facts)()
        self.hook = ""

    def _report_dropped(self) -> None:
        dropped, self._dropped = self._dropped, 0
        if dropped:
            self.report(f"is slow: it missed {dropped} events")

    def report(self, what: str) -> None:
        """Log what it did, and write it to the manifest."""
        reason = f"listener {self._name} {what}"
        self._scribe.record("problem", reason=reason)
        self._scribe.boundary.log(reason, logging.WARNING)
