"""Calls of an engine that nobody may cut short: one that is given up may block all later ones."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_LOOK_S = 0.5
"""How often it is looked whether an engine that does not answer is still alive."""


async def called(
    promise: Awaitable[Any],
    loop: asyncio.AbstractEventLoop | None,
    is_dead: Callable[[], bool],
    what: str,
) -> Any:
    """Await *promise* on *loop*, the engine's own; None, or this one: here.

    It goes on there if whoever waits here gives up. Raise CaptureError if the engine dies before it
    answers *what*, e.g. "vllm: start_profile".
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
    """Await it."""
    return await promise


def _seen(call: asyncio.Future[Any]) -> None:
    """Look at how a call ended that nobody waits for any more."""
    if not call.cancelled():
        call.exception()


async def run_on(loop: asyncio.AbstractEventLoop | None, function: Callable[[], object]) -> None:
    """Call *function* on *loop*, so that nothing of the engine's comes between; None: here."""
    if loop is None or loop is asyncio.get_running_loop():
        function()
        return

    async def there() -> None:
        function()

    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(there(), loop))


async def aside(function: Callable[[], Any]) -> Any:
    """Call *function*, which takes long, on a thread of its own, and wait for it.

    Not one of the loop's executor: a process waits at its end for those.
    """
    found: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def call() -> None:
        try:
            found.set_result(function())
        except BaseException as exc:  # handed to who waits
            found.set_exception(exc)

    try:
        threading.Thread(target=call, name="rlprof-engine", daemon=True).start()
    except RuntimeError:  # no thread is left
        call()
    return await asyncio.wrap_future(found)
