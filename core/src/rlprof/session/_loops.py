"""Event loops: the loop of an engine's hooks, and work that a loop waits for.

The executor of a loop may be full of calls that wait for this work, and it drops a call that is
cancelled before its turn. A thread of our own starts at once and always finishes.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import CaptureError
from rlprof.types import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlprof.config import ToolUse


@attrs.frozen(eq=False)
class Link:
    """The arguments of `Session.attach`."""

    handle: Any
    loop: asyncio.AbstractEventLoop | None = None
    workers: Workers = attrs.field(factory=Workers)
    """The orders that its plugin can carry to the processes of the engine."""

    def given(self, use: ToolUse, request: str = "") -> dict[str, Any]:
        """Return the arguments that only hooks of an engine get."""
        workers = attrs.evolve(self.workers, tools=use.asked_inside, request=request)
        return {"handle": self.handle, "workers": workers}

    def is_on_its_loop(self, loop: Any) -> bool:
        """Whether the calling thread is that of the engine's loop: the one given, or *loop*."""
        here = loop_here()
        return here is not None and here in (self.loop, loop)

    def settled(self, hook: Callable[[], Any]) -> Any:
        """Call *hook*, which may be asynchronous, and return its result."""
        result = hook()
        if not inspect.isawaitable(result):
            return result
        if is_on_a_loop():
            return _done_at_once(result)
        if self.loop is None:
            return asyncio.run(_awaited(result))
        if self.loop.is_closed():
            getattr(result, "close", lambda: None)()
            raise CaptureError("the event loop given to attach is closed")
        return asyncio.run_coroutine_threadsafe(_awaited(result), self.loop).result()


def _done_at_once(promise: Any) -> Any:
    """Return the result of a coroutine that has nothing to wait for."""
    coroutine = _awaited(promise)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise CaptureError("the engine's hooks wait for a loop, and this thread's own waits for them")


def is_on_a_loop() -> bool:
    """Whether an event loop runs on this thread, and so must not wait for its own work."""
    return loop_here() is not None


def loop_here() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _awaited(promise: Any) -> Any:
    return await promise


async def in_background(functions: Iterable[Callable[[], object]]) -> None:
    """Call each of *functions* on a thread, and wait until all have returned."""
    begun = [asyncio.wrap_future(start_background(function)) for function in functions]
    await asyncio.gather(*begun)


def start_background(function: Callable[[], object]) -> Future[object]:
    """Call *function* on a thread; a task that waits for it and is cancelled does not cancel it."""
    done: Future[object] = Future()
    done.set_running_or_notify_cancel()

    def work() -> None:
        try:
            done.set_result(function())
        except BaseException as exc:  # strict: the task that waits gets it
            done.set_exception(exc)

    run = contextvars.copy_context().run
    try:
        threading.Thread(target=run, args=(work,), name="rlprof-away", daemon=True).start()
    except RuntimeError:  # the host has no thread left: the phase of training continues
        done.set_result(None)
    return done
