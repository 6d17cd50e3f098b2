"""Signals: ends without partial results, and Ctrl-C while a process is being started."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_tidily() -> Iterator[None]:
    """Turn these signals into an exception, so that the code that runs meanwhile cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A signal that is ignored, as under nohup, stays ignored.
    ours = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _end)
    try:
        yield
    except _Ended as exc:
        print(f"rlprof: ended by {exc}", file=sys.stderr)
        raise
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


class _Ended(SystemExit):
    """A signal has come."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


def _end(number: int, _: object) -> None:
    raise _Ended(number)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C waiting while a process is started.

    A Ctrl-C between the fork and the assignment would orphan the child. The child calls
    `heed_interrupts` to get its own Ctrl-C back.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def heed_interrupts() -> None:
    """Let Ctrl-C through, in a process that was started while it was held back."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
