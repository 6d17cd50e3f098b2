"""Work in the background of an event loop, on a thread of its own.

A loop's executor may be full of calls that wait for this work, and it drops a call that is
cancelled before its turn. A thread of our own starts at once and always finishes.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def in_background(function: Callable[..., Any], *args: Any) -> asyncio.Future[None]:
    """Start to call *function*; return a future that is done when it has returned.

    Where the host has no thread left it is not called, and the training's own phase goes on.
    """
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def end(exc: BaseException | None) -> None:
        if done.done():  # cancelled
            return
        if exc is None:
            done.set_result(None)
        else:
            done.set_exception(exc)

    def work() -> None:
        raised: BaseException | None = None
        try:
            function(*args)
        except BaseException as exc:  # strict: who waits gets it
            raised = exc
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(end, raised)

    if not start_background(contextvars.copy_context().run, work):
        done.set_result(None)
    return done


def start_background(function: Callable[..., Any], *args: Any) -> bool:
    """Call *function* on a thread; return False if the host has no thread left."""
    thread = threading.Thread(target=function, args=args, name="rlprof-away", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return False
    return True
