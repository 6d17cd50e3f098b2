"""A free port for a server of a test."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

_FIRST, _BEYOND = 20_000, 22_000
"""Below the kernel's ports for outgoing connections, one of which could be taken before the start;
above Ray's."""


def free_port() -> int:
    """Return a free port; the one 10,000 higher, which SGLang also takes, is free, too."""
    while True:
        port = random.SystemRandom().randrange(_FIRST, _BEYOND)
        if _are_free(port, port + 10_000):
            return port


def _are_free(*ports: int) -> bool:
    with ExitStack() as held:
        for port in ports:
            try:
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                return False
    return True
