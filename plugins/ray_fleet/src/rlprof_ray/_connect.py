"""Connects a command to a cluster."""

from __future__ import annotations

import logging
import socket

from rlprof.errors import RlprofError, one_line

_KNOCK_S = 10


def connect(address: str, command: str) -> None:
    """Connect to the cluster at *address*; raise RlprofError, of *command*, if none answers."""
    try:
        import ray
    except ImportError as exc:
        raise RlprofError(f"{command}: Ray is not installed here; pip install ray") from exc
    if ray.is_initialized():
        return
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as exc:
        raise RlprofError(
            f"{command}: no cluster answers at {address}: {one_line(exc)}; name its head: "
            "--address HOST:6379"
        ) from exc


def _knock(address: str) -> None:
    """Raise OSError if nothing listens there; Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S).close()
