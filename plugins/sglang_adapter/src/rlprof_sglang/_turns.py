"""Turns to run an Engine's loop: each caller of the Engine runs it, and so do our hooks.

If two threads run one loop at the same time, they fail, and so does the rollout. So once an engine
is attached, its callers wait while we run its loop, and we wait while a caller runs it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

from rlprof_engine.wrapped import Wrapped

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Coroutine

_LOOK_S = 0.02
"""How often to check whether somebody else runs a loop."""
_SLICE_S = 0.2
"""How long we run a loop at a time. A caller that waits then runs it, and serves us, too."""
_ATTRIBUTE = "_rlprof_turns"


class Turns:
    """Whose turn it is to run one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._changed = threading.Condition()
        self._ours: int | None = None
        """The thread that runs the loop for us."""
        self._theirs = 0
        """Number of other threads that run it. If there are several, they fail, as without us."""
        self._waiting = 0
        """Number of other threads that wait for us; they come first."""
        Wrapped().put(loop, "run_until_complete", self._in_turn)

    @property
    def is_taken(self) -> bool:
        """Whether a thread runs the loop until something is done."""
        return self._theirs > 0 or self._ours is not None

    def take(self, within_s: float) -> bool:
        """Wait for our turn; False: it did not come."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: not self.is_taken and not self._waiting, within_s
            ):
                return False
            self._ours = threading.get_ident()
            return True

    def give(self) -> None:
        """Let the next thread run the loop."""
        with self._changed:
            self._ours = None
            self._changed.notify_all()

    def _in_turn(self, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._ours == threading.get_ident():
            return inner(*args, **kwargs)
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._ours is None)
            finally:
                self._waiting -= 1
            self._theirs += 1
        try:
            return inner(*args, **kwargs)
        finally:
            with self._changed:
                self._theirs -= 1
                self._changed.notify_all()


def turns_of(loop: asyncio.AbstractEventLoop | None) -> Turns:
    """Return the turns of *loop*: the same for all engines on that loop."""
    found: Turns | None = getattr(loop, _ATTRIBUTE, None)
    if found is None:
        found = Turns(loop)
        if hasattr(loop, "__dict__"):
            setattr(loop, _ATTRIBUTE, found)
    return found


def driven(
    loop: asyncio.AbstractEventLoop, hook: Coroutine[Any, Any, Any], within_s: float
) -> concurrent.futures.Future[Any]:
    """Run *hook* on *loop*, in any thread that runs it, for *within_s*; never cut it short."""
    until, turns = time.monotonic() + within_s, turns_of(loop)
    call = asyncio.run_coroutine_threadsafe(hook, loop)  # if a thread runs the loop, this begins
    while not call.done() and (left := until - time.monotonic()) > 0:
        if not turns.take(min(left, _LOOK_S)):
            continue
        try:
            _run(loop, call, min(left, _SLICE_S))
        finally:
            turns.give()
    return call


def _run(loop: asyncio.AbstractEventLoop, call: concurrent.futures.Future[Any], s: float) -> None:
    """Run *loop* until *call* is done, for at most *s* seconds."""
    there = asyncio.wrap_future(call, loop=loop)
    there.add_done_callback(lambda late: late.cancelled() or late.exception())  # `call` has it
    waiting = asyncio.wait({there}, timeout=s)
    try:
        loop.run_until_complete(waiting)
    except RuntimeError:  # a caller unknown to us runs it: let it work
        waiting.close()
        time.sleep(_LOOK_S)
