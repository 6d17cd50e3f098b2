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
"""How often to check whether somebody else runs a loop; callers that wait for us run it then."""
_SLICE_S = 0.2
"""How long we run a loop at a time. A caller that waits then runs it, and serves us, too."""
_ATTRIBUTE = "_rlprof_turns"


class Turns:
    """Whose turn it is to run one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._lock = threading.Lock()
        """We hold it while we run the loop."""
        self._theirs = 0
        """Number of other threads that run it. If there are several, they fail, as without us."""
        self._inner = getattr(loop, "run_until_complete", None)
        Wrapped().put(loop, "run_until_complete", self._in_turn)

    @property
    def is_taken(self) -> bool:
        """Whether a thread runs the loop until something is done."""
        return self._theirs > 0 or self._lock.locked()

    def _in_turn(self, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self._theirs += 1
        try:
            return inner(*args, **kwargs)
        finally:
            with self._lock:
                self._theirs -= 1

    def run(self, there: asyncio.Future[Any], s: float) -> None:
        """Run the loop until *there* is done, for at most *s*; not if somebody else runs it."""
        with self._lock:
            if self._theirs or self._inner is None:
                return
            waiting = asyncio.wait({there}, timeout=s)
            try:
                self._inner(waiting)
            except RuntimeError:  # a caller unknown to us runs it: let it work
                waiting.close()


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
    there = asyncio.wrap_future(call, loop=loop)
    there.add_done_callback(lambda late: late.cancelled() or late.exception())  # `call` has it
    while not call.done() and (left := until - time.monotonic()) > 0:
        turns.run(there, min(left, _SLICE_S))
        if not call.done():
            time.sleep(_LOOK_S)
    return call
