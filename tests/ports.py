"""A port for a server of a test's own."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return one that nobody has, and that leaves room: SGLang takes another, 10,000 higher."""
    while True:
        with socket.socket() as mine:
            mine.bind(("127.0.0.1", 0))
            port = mine.getsockname()[1]
        if port < 55_000:
            return port
