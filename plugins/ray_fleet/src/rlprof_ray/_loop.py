"""The event loop of an async actor: its methods work on that thread, the synchronous ones, too.

Ray runs what a driver asks on another thread of the actor. It is handed to the loop from there, so
that windows open and close on the thread that works.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

log = logging.getLogger("rlprof")


def own_loop() -> Any:
    """Return the event loop of an async actor; None: this actor has none."""
    import ray

    core = ray._private.worker.global_worker.core_worker  # noqa: SLF001 -- Ray says it nowhere else
    if not core.current_actor_is_asyncio():
        return None
    constructor = SimpleNamespace(function_name="__init__")  # which the default loop has run
    try:
        return core.get_event_loop(constructor, "")[0]
    except Exception as exc:  # another version of Ray: hooks get a loop of their own
        log.warning("the event loop of this actor was not found: %s", exc)
        return None


def is_async(_: Any) -> bool:
    """Whether this actor is async; Ray gives the actor."""
    return own_loop() is not None


def on_loop(loop: Any, call: Callable[[], T]) -> Future[T]:
    """Have *loop* make *call*; what it returns or raises is in the future."""
    answer: Future[T] = Future()

    def make() -> None:
        try:
            answer.set_result(call())
        except BaseException as exc:
            answer.set_exception(exc)

    loop.call_soon_threadsafe(make)
    return answer
