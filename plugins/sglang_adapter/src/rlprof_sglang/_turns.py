"""Turns to run an Engine's loop: each caller of the Engine runs it, and so do our hooks.

If two threads run one loop at the same time, they fail, and so does the rollout. So once an Engine
is attached, its callers wait while we run its loop, and we wait while a caller runs it. The loop
may be the user's own, so it stays as it is: only what the Engine calls its loop is replaced.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Coroutine

_LOOK_S = 0.02
"""How often to check whether somebody else runs a loop; callers that wait for us run it then."""
_SLICE_S = 0.2
"""How long we run a loop at a time. A caller that waits then runs it, and serves us, too."""


class Turns:
    """Whose turn it is to run one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._lock = threading.Lock()
        """We hold it while we run the loop."""
        self._theirs = 0
        """Number of other threads that run it. If there are several, they fail, as without us."""

    @property
    def is_taken(self) -> bool:
        """Whether a thread runs the loop until something is done."""
        return self._theirs > 0 or self._lock.locked()

    def run_until_complete(self, future: Any) -> Any:
        """Run the loop for a caller of the Engine."""
        with self._lock:
            self._theirs += 1
        try:
            return self.loop.run_until_complete(future)
        finally:
            with self._lock:
                self._theirs -= 1

    def run(self, there: asyncio.Future[Any], s: float) -> None:
        """Run the loop until *there* is done, for at most *s*; not if somebody else runs it."""
        with self._lock:
            if self._theirs:
                return
            waiting = asyncio.wait({there}, timeout=s)
            try:
                self.loop.run_until_complete(waiting)
            except RuntimeError:  # a caller unknown to us runs it: let it work
                waiting.close()


class EngineLoop(asyncio.AbstractEventLoop):
    """What an attached Engine has as its `loop`: that loop, but its callers take turns."""

    def __init__(self, turns: Turns) -> None:
        self.rlprof_turns = turns

    def __getattribute__(self, name: str) -> Any:
        turns: Turns = object.__getattribute__(self, "rlprof_turns")
        if name == "rlprof_turns":
            return turns
        return getattr(turns if name == "run_until_complete" else turns.loop, name)


def plain(loop: Any) -> Any:
    """Return *loop* as it was before its Engine was attached."""
    return loop.rlprof_turns.loop if isinstance(loop, EngineLoop) else loop


def turns_of(handle: Any, loop: asyncio.AbstractEventLoop) -> Turns:
    """Return the turns of *handle* on *loop*; if it is an Engine, its callers take them, too."""
    now = getattr(handle, "loop", None)
    turns: Turns = now.rlprof_turns if isinstance(now, EngineLoop) else Turns(loop)
    if now is loop:
        with suppress(AttributeError):  # of an object that only looks like an Engine
            handle.loop = EngineLoop(turns)  # type: ignore[abstract]  # it has them by its loop
    return turns if turns.loop is loop else Turns(loop)


def driven(
    turns: Turns, hook: Coroutine[Any, Any, Any], within_s: float
) -> concurrent.futures.Future[Any]:
    """Run *hook* on the loop, in any thread that runs it, for *within_s*; never cut it short."""
    until, loop = time.monotonic() + within_s, turns.loop
    call = asyncio.run_coroutine_threadsafe(hook, loop)  # if a thread runs the loop, this begins
    there = asyncio.wrap_future(call, loop=loop)
    there.add_done_callback(lambda late: late.cancelled() or late.exception())  # `call` has it
    while not call.done() and (left := until - time.monotonic()) > 0:
        turns.run(there, min(left, _SLICE_S))
        if not call.done():
            time.sleep(_LOOK_S)
    return call
