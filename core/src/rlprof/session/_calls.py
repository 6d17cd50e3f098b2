"""Calls the hooks of one plugin: on the thread that asks, or on a separate one.

A tool that runs on the `thread` it records is called by that thread: its time can be measured, but
not cut. Every other plugin has a separate thread, and a step waits for it only until the limit of
the hook. A call that is given up continues, and its remains are cleaned up afterwards.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from rlprof.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.config import Limits
    from rlprof.session._boundary import Boundary

_PATIENCE_S = 5.0
"""Opening or closing the range of a phase may take this long; longer is a failure."""


class Overrun(Exception):  # noqa: N818 -- a result of waiting, not an error of the call
    """The call was not answered in time."""


class HookThread:
    """Makes calls one at a time; a daemon, because a hook may hang until the process ends."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def call(
        self,
        function: Callable[[], Any],
        *,
        timeout_s: float,
        afterwards: Callable[[], Any] | None = None,
    ) -> Any:
        """Return the result of *function*; give it up and raise Overrun after *timeout_s*.

        If the call returns too late, *afterwards* follows it on the same thread.
        """
        answer: Future[Any] = Future()
        self._calls.put((function, afterwards, answer))
        try:
            wait([answer], timeout_s)
        finally:  # also where the user's signal handler raises
            is_given_up = answer.cancel()
        if is_given_up:
            raise Overrun
        return answer.result()

    def end(self) -> None:
        """Let the thread end once it has made its calls."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, afterwards, answer = call
            result = error = None
            try:
                result = function()
            except Exception as exc:  # raised again in the thread that waits
                error = exc
            except BaseException as exc:  # a SystemExit here is a plugin's, not the user's
                error = CaptureError(f"raised {type(exc).__name__}: {exc}")
            try:
                if error is None:
                    answer.set_result(result)
                else:
                    answer.set_exception(error)
            except InvalidStateError:  # it was given up meanwhile
                with suppress(Exception):  # nobody waits, and the thread has more calls to make
                    if afterwards is not None:
                        afterwards()
            del call, function, afterwards, answer, result, error  # nothing is kept alive


class Caller:
    """Calls the hooks of a plugin for one target."""

    def __init__(self, name: str, limits: Limits, boundary: Boundary) -> None:
        self.broken = ""
        """Why the plugin is not used any more."""
        self.unanswered = ""
        """The hook that was given up, with unknown outcome: `start` or `stop`."""
        self._name = name
        self._limits = limits
        self._boundary = boundary
        self._thread: HookThread | None = None
        self._calling: tuple[str, float] | None = None
        """The hook that runs on the working thread, and since when."""

    def call(
        self,
        hook: str,
        function: Callable[[], Any],
        *,
        here: bool,
        afterwards: Callable[[], Any] | None = None,
        blocks: bool = False,
    ) -> tuple[Any, float]:
        """Return the result of *function*, and the seconds it took.

        Call it *here*, where `hangs` can see it, or on the thread of the plugin, where *afterwards*
        follows a late call. Do not wait for a call that *blocks* the loop it needs.
        """
        self.unanswered = ""
        began, limit = time.monotonic(), f"{hook}_timeout_s"
        timeout_s = getattr(self._limits, limit, _PATIENCE_S)
        if here:
            self._calling = hook, began
            try:
                result = function()
            finally:
                self._calling = None
        else:
            if self._thread is None:
                self._thread = HookThread(f"rlprof-{self._name}")
            wait_s = 0 if blocks else timeout_s
            try:
                result = self._thread.call(function, timeout_s=wait_s, afterwards=afterwards)
            except Overrun:
                self.unanswered = hook
                raise CaptureError(self._why_unanswered(hook, wait_s)) from None
        seconds = time.monotonic() - began
        if seconds > timeout_s and hasattr(self._limits, limit):
            self.broken = f"its {hook} took {seconds:.1f} s, more than {limit} {timeout_s:g}"
            why = f"{self.broken}; {self._name} is not used again"
            self._boundary.warn(f"{self._name}.{hook}", why)
        return result, round(seconds, 6)

    def _why_unanswered(self, hook: str, waited_s: float) -> str:
        if not waited_s:
            return "it ended on the engine's own event loop, which stops it once it runs again"
        self.broken = f"{hook} was not answered within {hook}_timeout_s {waited_s:g}"
        return f"{self.broken}; {self._name} is not used again"

    def hangs(self) -> tuple[str, str] | None:
        """Report, once, a hook that does not return to the working thread."""
        calling = self._calling
        if calling is None:
            return None
        hook, began = calling
        seconds = time.monotonic() - began
        if seconds <= getattr(self._limits, f"{hook}_timeout_s", _PATIENCE_S):
            return None
        self._calling = None
        return hook, (
            f"has not returned for {seconds:.0f} s; it runs on the working thread, so rlprof "
            "cannot stop it"
        )

    def end(self) -> None:
        """Let the plugin's thread end."""
        if self._thread is not None:
            self._thread.end()
            self._thread = None
