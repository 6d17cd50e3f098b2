"""Requests to a live run, from rlprof-live."""

from __future__ import annotations

from rlprof.distributions import load

load("rlprof_live.control", asked="control")

from rlprof_live.control import (  # noqa: E402
    Request,
    as_config,
    asker,
    cancel,
    check,
    new_id,
    read,
    waiting,
    write,
)

__all__ = [
    "Request", "as_config", "asker", "cancel", "check", "new_id", "read", "waiting", "write",
]  # fmt: skip
