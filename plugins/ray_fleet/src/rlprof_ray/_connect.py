"""Connects a command to a cluster."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path

from rlprof.errors import RlprofError, one_line

_KNOCK_S = 10


def connect(address: str, command: str) -> None:
    """Connect to the cluster at *address*; raise RlprofError, of *command*, if none answers."""
    _send_token()
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
        why = one_line(exc).rstrip(".")
        raise RlprofError(
            f"{command}: no cluster answers at {address}: {why}; name its head: --address HOST:6379"
        ) from exc


def _send_token() -> None:
    """Let Ray send this user's token, if there is one; it must not be imported yet.

    A cluster that `ray.init()` starts asks for one since Ray 2.60, and others ignore it. Ray itself
    sends it only in this mode.
    """
    kept = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    if "RAY_AUTH_TOKEN" in os.environ or Path(kept).exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _knock(address: str) -> None:
    """Raise OSError if nothing listens there; Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S).close()
