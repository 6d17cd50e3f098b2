"""Long pauses of the garbage collector, as spans `gc`."""

from __future__ import annotations

import gc
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof.session._session import Session

_LEAST_NS = 5_000_000
"""Shorter pauses are many and explain nothing."""


def watch_pauses(session: Session) -> Callable[[], None]:
    """Write a span for each long collection of this process; return a function that ends this."""
    began = 0

    def collected(when: str, said: Mapping[str, Any]) -> None:
        nonlocal began
        now = time.monotonic_ns()
        if when == "start":
            began = now
        elif now - began >= _LEAST_NS:
            step = session.current_step
            noted = {key: said[key] for key in ("generation", "collected") if key in said}
            session.scribe.span((
                "span", "gc", began, now, step, threading.get_ident(), next(session.ids),
                None if step is None else session.step_id, 0, noted,
            ))  # fmt: skip

    gc.callbacks.append(collected)

    def end() -> None:
        with suppress(ValueError):  # ended twice
            gc.callbacks.remove(collected)

    return end
