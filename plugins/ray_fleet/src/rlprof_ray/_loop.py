"""The event loop of an async actor: all its methods run on that thread, also synchronous ones.

Ray runs the calls of a driver on another thread of the actor. That thread hands them to the loop,
so that windows open and close on the working thread.
"""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

T = TypeVar("T")

log = logging.getLogger("rlprof")


def own_loop() -> Any:
    """Return the event loop of an async actor; None: this actor has none."""
    import ray

    core = ray._private.worker.global_worker.core_worker  # noqa: SLF001 -- Ray has no public name
    if not core.current_actor_is_asyncio():
        return None
    constructor = SimpleNamespace(function_name="__init__")  # it ran on the default loop
    try:
        return core.get_event_loop(constructor, "")[0]
    except Exception as exc:  # another version of Ray: hooks get a loop of their own
        log.warning("the event loop of this actor was not found: %s", exc)
        return None


def on_loop(loop: Any, call: Callable[[], T]) -> Future[T]:
    """Make *call* on *loop*; the future gets its result or exception."""

    async def made() -> T:
        return call()

    return asyncio.run_coroutine_threadsafe(made(), loop)
