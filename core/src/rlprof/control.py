"""Requests to a live run, from rlprof-live."""

from __future__ import annotations

from rlprof.distributions import load

load("rlprof_live.control", asked="control")

from rlprof_live.control import Request, as_config, asker, check, new_id, read, waiting, write  # noqa: E402

__all__ = ["Request", "as_config", "asker", "check", "new_id", "read", "waiting", "write"]
