"""Ctrl-C while a process is being started."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


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
