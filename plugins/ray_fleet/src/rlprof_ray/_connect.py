"""Connects a command to a cluster."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from pathlib import Path

from rlprof.errors import RlprofError, one_line

_KNOCK_S = 10


def connect(address: str, command: str) -> str:
    """Connect to the cluster at *address*, and return the address of its head.

    Raise RlprofError, of *command*, if none answers.
    """
    _send_token()
    try:
        import ray
    except ImportError as exc:
        raise RlprofError(f"{command}: Ray is not installed here; pip install ray") from exc
    try:
        if not ray.is_initialized():
            if address == "auto" and not os.environ.get("RAY_ADDRESS"):
                _check_alone(command)
            _knock(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        return str(ray.get_runtime_context().gcs_address)
    except (OSError, ValueError, RuntimeError) as exc:
        _check_versions(str(exc), command)
        why = one_line(exc).rstrip(".")
        raise RlprofError(
            f"{command}: no cluster answers at {address}: {why}; name its head: --address HOST:6379"
        ) from exc


def _check_alone(command: str) -> None:
    """Raise RlprofError if several clusters run on this host: Ray would take any of them."""
    try:
        from ray._private.services import find_gcs_addresses

        there = sorted(set(find_gcs_addresses()))
    except (ImportError, TypeError):  # Ray has no public name for it
        return
    if len(there) > 1:
        raise RlprofError(
            f"{command}: several clusters run on this host; name one: --address "
            + " or ".join(there)
        )


def _check_versions(words: str, command: str) -> None:
    """Raise RlprofError if Ray refused, in these *words*, another release or another Python."""
    rays, pythons = (re.findall(rf"\b{name}: (\d\S*)", words) for name in ("Ray", "Python"))
    if "Version mismatch" not in words or not len(rays) == len(pythons) == 2:
        return
    how = "run this command in the environment of the cluster"
    if pythons[0] == pythons[1]:
        how = f"{sys.executable} -m pip install ray=={rays[0]}, or {how}"
    raise RlprofError(
        f"{command}: the cluster runs Ray {rays[0]} on Python {pythons[0]}, and this command Ray "
        f"{rays[1]} on Python {pythons[1]}; {how}"
    ) from None


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
