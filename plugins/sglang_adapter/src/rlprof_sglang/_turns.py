"""Turns to run an Engine's loop: the Engine's methods run it, and so do our hooks.

If two threads run one loop at the same time, they fail, and so does the rollout. So once an Engine
is attached, its methods wait while we run its loop, and we wait while a method runs it. The loop
may be the user's own, so neither it nor `engine.loop` changes: only the Engine's methods do.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from rlprof_engine.wrapped import Wrapped

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Coroutine, Iterator

_LOOK_S = 0.02
"""How often to check whether somebody else runs a loop; callers that wait for us run it then."""
_SLICE_S = 0.2
"""How long we run a loop at a time. A caller that waits then runs it, and serves us, too."""
_STRANGERS_S = 1
"""How long to wait until somebody runs a loop that we must not run."""
_RUNS = "run_until_complete"
_TURNS = "_rlprof_turns"


class Turns:
    """Whose turn it is to run one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._lock = threading.Lock()
        """We hold it while we run the loop."""
        self._ours = 0
        """The thread on which we run it."""
        self._theirs: list[int] = []
        """Threads in a method that runs it. If there are several, they fail, as without us."""
        self._strangers: set[int] = set()
        """Threads that were seen to run it without such a method: they would not wait for us."""

    @property
    def is_taken(self) -> bool:
        """Whether a thread runs the loop until something is done."""
        return bool(self._theirs) or self._lock.locked()

    @property
    def has_strangers(self) -> bool:
        """Whether another thread may run the loop at any time, and would fail if we ran it."""
        return bool(self._strangers - {threading.get_ident()})

    def call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a *method* of the Engine that runs the loop."""
        with self._taken():
            result = method(*args, **kwargs)
        return self._streamed(result) if inspect.isgenerator(result) else result

    def saw(self) -> None:
        """Remember this thread, which runs the loop, unless it does so for a method or for us."""
        me = threading.get_ident()
        if me not in (self._ours, *self._theirs):
            self._strangers.add(me)

    def run(self, there: asyncio.Future[Any], s: float) -> None:
        """Run the loop until *there* is done, for at most *s*; not if somebody else runs it."""
        with self._lock:
            if self._theirs or self.has_strangers:
                return
            waiting = asyncio.wait({there}, timeout=s)
            self._ours = threading.get_ident()
            try:
                self.loop.run_until_complete(waiting)
            except RuntimeError:  # a caller unknown to us runs it: let it work
                waiting.close()
            finally:
                self._ours = 0

    @contextmanager
    def _taken(self) -> Iterator[None]:
        me = threading.get_ident()
        if me == self._ours:  # called by a task of the loop: it must not wait for us
            yield
            return
        with self._lock:
            self._theirs.append(me)
        try:
            yield
        finally:
            with self._lock:
                self._theirs.remove(me)

    def _streamed(self, stream: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self._taken():
                try:
                    one = next(stream)
                except StopIteration:
                    return
            yield one


_known: WeakValueDictionary[int, Turns] = WeakValueDictionary()
"""The turns of each loop, by the loop's id; Engines made on one thread share a loop."""


def turns_of(handle: Any, loop: asyncio.AbstractEventLoop) -> Turns:
    """Return the turns of *loop*; if it is the loop of an Engine, *handle*, its methods take them.

    They are the same for all engines on that loop.
    """
    turns = _known.setdefault(id(loop), Turns(loop))
    is_its_own = getattr(handle, "loop", None) is loop and hasattr(handle, "__dict__")
    if is_its_own and vars(handle).get(_TURNS) is not turns:
        setattr(handle, _TURNS, turns)
        wrapped = Wrapped()
        for name in dir(type(handle)):
            method = inspect.getattr_static(type(handle), name, None)
            if inspect.iscoroutinefunction(method):
                setattr(handle, name, _seen(turns, getattr(handle, name)))
            elif inspect.isfunction(method) and _runs_a_loop(
                getattr(inspect.unwrap(method), "__code__", None)
            ):
                wrapped.put(handle, name, turns.call)
    return turns


def _seen(turns: Turns, method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an asynchronous *method* of the Engine, whose caller runs the loop."""

    @functools.wraps(method)
    async def seen(*args: Any, **kwargs: Any) -> Any:
        turns.saw()
        return await method(*args, **kwargs)

    return seen


def _runs_a_loop(code: Any) -> bool:
    """Whether *code* is code that calls `run_until_complete`, or defines a function that does."""
    return inspect.iscode(code) and (
        _RUNS in code.co_names or any(map(_runs_a_loop, code.co_consts))
    )


def driven(
    turns: Turns, hook: Coroutine[Any, Any, Any], within_s: float
) -> concurrent.futures.Future[Any]:
    """Run *hook* on the loop, in any thread that runs it, for *within_s*; never cut it short.

    If only strangers may run the loop, it begins when they do.
    """
    began, loop = time.monotonic(), turns.loop
    until = began + within_s
    call = asyncio.run_coroutine_threadsafe(hook, loop)  # if a thread runs the loop, this begins
    there = asyncio.wrap_future(call, loop=loop)
    there.add_done_callback(lambda late: late.cancelled() or late.exception())  # `call` has it
    while not call.done() and (left := until - time.monotonic()) > 0:
        if turns.has_strangers:
            until = min(until, began + _STRANGERS_S)
        turns.run(there, min(left, _SLICE_S))
        if not call.done():
            time.sleep(_LOOK_S)
    return call
