"""Calls of an engine that are never cut short: an abandoned call may block all later ones."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_LOOK_S = 0.5
"""How often to check whether a silent engine is still alive."""


async def called(
    promise: Awaitable[Any],
    loop: asyncio.AbstractEventLoop | None,
    is_dead: Callable[[], bool],
    what: str,
) -> Any:
    """Await *promise* on *loop*, the engine's event loop; None: await it on the running loop.

    The call continues on *loop* if the caller gives up. Raise CaptureError if the engine dies
    before it answers *what*, e.g. "vllm: start_profile".
    """
    if loop is None or loop is asyncio.get_running_loop():
        call: asyncio.Future[Any] = asyncio.ensure_future(awaited(promise))
    else:
        call = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(awaited(promise), loop))
    call.add_done_callback(_seen)
    while not (await asyncio.wait({call}, timeout=_LOOK_S))[0]:
        if is_dead() and not (await asyncio.wait({call}, timeout=_LOOK_S))[0]:
            engine, _, asked = what.partition(": ")
            raise CaptureError(f"{engine}: the engine died before it answered {asked}")
    return call.result()


async def awaited(promise: Awaitable[Any]) -> Any:
    """Turn *promise* into a coroutine."""
    return await promise


def _seen(call: asyncio.Future[Any]) -> None:
    """Retrieve the error of an abandoned call, so that asyncio does not log it."""
    if not call.cancelled():
        call.exception()


async def run_on(loop: asyncio.AbstractEventLoop | None, function: Callable[[], object]) -> None:
    """Call *function* on *loop*, uninterrupted by the engine's own work; None: call it here."""
    if loop is None or loop is asyncio.get_running_loop():
        function()
        return

    async def there() -> None:
        function()

    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(there(), loop))


async def aside(function: Callable[[], Any]) -> Any:
    """Call the slow *function* on its own thread, and wait for it.

    Do not use the loop's executor: at exit, a process waits for its threads.
    """
    found: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def call() -> None:
        try:
            found.set_result(function())
        except BaseException as exc:  # passed to the caller
            found.set_exception(exc)

    try:
        threading.Thread(target=call, name="rlprof-engine", daemon=True).start()
    except RuntimeError:  # no thread can be started
        call()
    return await asyncio.wrap_future(found)
