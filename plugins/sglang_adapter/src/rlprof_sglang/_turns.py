"""An Engine's loop is run by whoever asks it something: one at a time, our hooks among them.

Two threads that run one loop at the same time fail, and a rollout with them. So whoever runs it
waits while we do, from when its engine is attached, and we while somebody else does.
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
"""How often it is looked whether somebody else runs a loop."""
_SLICE_S = 0.2
"""So long one is run for us at once: whoever waits for it meanwhile goes on, and serves us, too."""
_ATTRIBUTE = "_rlprof_turns"


class Turns:
    """Whose turn it is to run one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._changed = threading.Condition()
        self._ours: int | None = None
        """The thread that runs it for us."""
        self._theirs = 0
        """How many others run it: one, or they fail, as they would without us."""
        self._waiting = 0
        """How many of them wait for us: they come first."""
        Wrapped().put(loop, "run_until_complete", self._in_turn)

    @property
    def is_taken(self) -> bool:
        """Whether somebody runs it until something is done."""
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
        """Let the next one run it."""
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
    """Return those of *loop*: the same for all who attach what lives on it."""
    found: Turns | None = getattr(loop, _ATTRIBUTE, None)
    if found is None:
        found = Turns(loop)
        if hasattr(loop, "__dict__"):
            setattr(loop, _ATTRIBUTE, found)
    return found


def driven(
    loop: asyncio.AbstractEventLoop, hook: Coroutine[Any, Any, Any], within_s: float
) -> concurrent.futures.Future[Any]:
    """Run *hook* on *loop*, in any thread that runs it, for up to this long; never cut it short."""
    until, turns = time.monotonic() + within_s, turns_of(loop)
    call = asyncio.run_coroutine_threadsafe(hook, loop)  # where somebody runs it, it has begun
    while not call.done() and (left := until - time.monotonic()) > 0:
        if not turns.take(min(left, _LOOK_S)):
            continue
        try:
            _run(loop, call, min(left, _SLICE_S))
        finally:
            turns.give()
    return call


def _run(loop: asyncio.AbstractEventLoop, call: concurrent.futures.Future[Any], s: float) -> None:
    """Run *loop* until *call* is done, for so many seconds."""
    there = asyncio.wrap_future(call, loop=loop)
    there.add_done_callback(lambda late: late.cancelled() or late.exception())  # told by `call`
    waiting = asyncio.wait({there}, timeout=s)
    try:
        loop.run_until_complete(waiting)
    except RuntimeError:  # somebody runs it of whom we know nothing: let them work
        waiting.close()
        time.sleep(_LOOK_S)
