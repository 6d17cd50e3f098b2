"""How the hooks of one plugin are called: right here, or on a thread of their own in their time.

A tool that runs on the `thread` it records is called right here; its time can be measured, not
cut. A tool that may be called from anywhere in the `process`, and an engine, have a thread of
their own to be called on, and a step stops waiting for them when their time is over.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from rlprof.errors import CaptureError
from rlprof.session._worker import Overrun, Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.config import Limits
    from rlprof.session._boundary import Boundary
    from rlprof.session._link import Link

_PATIENCE_S = 5.0
"""A range of a phase that takes longer to open or close has gone wrong."""


class Caller:
    """Calls the hooks of one plugin for one target."""

    def __init__(self, name: str, limits: Limits, boundary: Boundary, link: Link | None) -> None:
        self.broken = ""
        """Why the plugin is not used any more."""
        self.unanswered = ""
        """The hook that was given up and is in doubt: `start` or `stop`."""
        self._name = name
        self._limits = limits
        self._boundary = boundary
        self._link = link
        self._worker: Worker | None = None
        self._calling: tuple[str, float] | None = None
        """The hook that runs on the working thread, and since when."""

    def timed(
        self,
        hook: str,
        function: Callable[[], Any],
        afterwards: Callable[[], Any],
        *,
        here: bool,
        is_held_up: bool = False,
    ) -> tuple[Any, float]:
        """Call *function* within its time; *afterwards* follows a call answered too late.

        One that *is_held_up* would wait for the loop of the very thread that waits for it.
        """
        limit = f"{hook}_timeout_s"
        timeout_s = getattr(self._limits, limit)
        self.unanswered = ""
        if is_held_up and not here:
            self._leave(hook, function, afterwards)
        began = time.monotonic()
        if here:
            result = self.here(hook, partial(self.settled, function))
        else:
            if self._worker is None:
                self._worker = Worker(f"rlprof-{self._name}")
            try:
                result = self._worker.call(
                    partial(self.settled, function), timeout_s=timeout_s, afterwards=afterwards
                )
            except Overrun:
                self.unanswered = hook
                self.broken = f"{hook} was not answered within {limit} {timeout_s:g}"
                raise CaptureError(f"{self.broken}; {self._name} is not used again") from None
        seconds = time.monotonic() - began
        if seconds > timeout_s:
            self.broken = f"its {hook} took {seconds:.1f} s, more than {limit} {timeout_s:g}"
            self._boundary.tell(
                f"{self._name}.{hook}", f"{self.broken}; {self._name} is not used again"
            )
        return result, round(seconds, 6)

    def _leave(
        self, hook: str, function: Callable[[], Any], afterwards: Callable[[], Any]
    ) -> NoReturn:
        """Queue the stop until the loop is free; never start anything."""
        if hook != "stop":
            raise CaptureError("the engine's own event loop cannot answer while it waits")
        if self._worker is not None:
            self.unanswered = hook
            ended = partial(self.settled, function)
            with suppress(Overrun):
                self._worker.call(ended, timeout_s=0, afterwards=afterwards)
        raise CaptureError(
            "it ended on the engine's own event loop, which stops it when it goes on"
        )

    def here(self, hook: str, function: Callable[[], Any]) -> Any:
        """Call *function* on the calling thread, under the eyes of `hangs`."""
        self._calling = hook, time.monotonic()
        try:
            return function()
        finally:
            self._calling = None

    def settled(self, hook: Callable[[], Any]) -> Any:
        """Call *hook*; what an engine's hook promises is waited for."""
        result = hook()
        return result if self._link is None else self._link.settle(result)

    def hangs(self) -> tuple[str, float] | None:
        """Name, once, the hook that does not return to the working thread, and since when."""
        calling = self._calling
        if calling is None:
            return None
        hook, began = calling
        seconds = time.monotonic() - began
        if seconds <= getattr(self._limits, f"{hook}_timeout_s", _PATIENCE_S):
            return None
        self._calling = None
        return hook, seconds

    def end(self) -> None:
        """Let the plugin's thread end."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None
