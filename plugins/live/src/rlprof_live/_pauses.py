"""Pauses of Python's garbage collector: a span for each long one."""

from __future__ import annotations

import gc
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.session._session import Session

_LEAST_NS = 5_000_000
"""Shorter pauses are many and explain nothing."""


class Pauses:
    """Watches the collections of this process, for one of its sessions."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._began = 0
        if not any(isinstance(one, Pauses) for one in gc.callbacks):
            gc.callbacks.append(self)
            session.at_end.append(self.end)

    def __call__(self, when: str, info: Mapping[str, Any]) -> None:
        """Hear from the collector that a collection starts or has ended."""
        now = time.monotonic_ns()
        if when == "start":
            self._began = now
        elif now - self._began >= _LEAST_NS:
            noted = {key: info[key] for key in ("generation", "collected") if key in info}
            self._session.add_span("gc", self._began, now, noted)

    def end(self) -> None:
        """Watch no more; any number of times."""
        with suppress(ValueError):
            gc.callbacks.remove(self)
