"""A thread that makes calls for others, so that these can stop waiting for them."""

from __future__ import annotations

import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from rlprof.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable


class Overrun(Exception):  # noqa: N818 -- a result of waiting, not an error of the call
    """The call was not answered in time; it goes on, and what it leaves is cleaned up after it."""


class _Call:
    def __init__(self, function: Callable[[], Any], afterwards: Callable[[], Any]) -> None:
        self.function = function
        self.afterwards = afterwards
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.given_up = False
        self.result: Any = None
        self.error: BaseException | None = None

    def give_up(self) -> bool:
        """Have it cleaned up when it is answered; False: it was, just now."""
        with self.lock:
            self.given_up = not self.done.is_set()
        return self.given_up

    def run(self) -> None:
        try:
            self.result = self.function()
        except Exception as exc:  # handed to who waits
            self.error = exc
        except BaseException as exc:  # a SystemExit here is a plugin's, not the user's
            self.error = CaptureError(f"raised {type(exc).__name__}: {exc}")
        with self.lock:
            late = self.given_up
            self.done.set()
        if late:
            with suppress(Exception):  # nobody waits; the thread goes on for those that come
                self.afterwards()


class Worker:
    """One daemon thread; it must not outlive the process, whatever it is stuck in."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def call(
        self, function: Callable[[], Any], *, timeout_s: float, afterwards: Callable[[], Any]
    ) -> Any:
        """Return what *function* returns; raise Overrun after *timeout_s*.

        A call that is answered too late is followed by *afterwards* on the same thread.
        """
        call = _Call(function, afterwards)
        self._calls.put(call)
        try:
            is_done = call.done.wait(timeout_s)
        except BaseException:  # the user's signal handler raises: nobody waits for it any more
            call.give_up()
            raise
        if not is_done and call.give_up():
            raise Overrun
        if call.error is not None:
            raise call.error
        return call.result

    def stop(self) -> None:
        """Let the thread end once it has done what was asked."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
