"""The way to one engine: its handle, and the event loop its asynchronous hooks belong to."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import CaptureError
from rlprof.types import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.config import ToolUse


@attrs.frozen(eq=False)
class Link:
    """What `Session.attach` was given."""

    handle: Any
    loop: asyncio.AbstractEventLoop | None = None
    workers: Workers = attrs.field(factory=Workers)
    """What its plugin can have the engine's own processes told."""

    def given(self, use: ToolUse, request: str = "") -> dict[str, Any]:
        """Return what hooks of an engine are called with beside what all are."""
        workers = attrs.evolve(self.workers, tools=use.asked_inside, request=request)
        return {"handle": self.handle, "workers": workers}

    def is_on_its_loop(self, loop: Any) -> bool:
        """Whether the calling thread is that of the engine's loop: the one given, or *loop*."""
        with suppress(RuntimeError):  # no loop runs on this thread
            return asyncio.get_running_loop() in (self.loop, loop)
        return False

    def settled(self, hook: Callable[[], Any]) -> Any:
        """Call *hook*, which may be asynchronous, and return what it comes to."""
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
    """Return what a coroutine comes to that has nothing to wait for."""
    coroutine = _awaited(promise)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise CaptureError("the engine's hooks wait for a loop, and this thread's own waits for them")


def is_on_a_loop() -> bool:
    """Whether an event loop runs on this thread, and so must not wait for what it should do."""
    return loop_here() is not None


def loop_here() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _awaited(promise: Any) -> Any:
    return await promise
