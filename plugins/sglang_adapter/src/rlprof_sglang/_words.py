"""The messages between the plugin and its code in the schedulers.

However SGLang is reached, it passes one thing to every scheduler: a profile request. So an order is
such a request, with the order in place of the folder. The answer is in the scheduler's state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCH = "RLPROF_SGLANG"
"""Environment variable: our code in the schedulers does something only if this is 1."""
MARK = "rlprof:"
"""Begins an order in the folder of a profile request; JSON follows."""
STATE = "rlprof"
"""Key in a scheduler's state."""
FRONTEND = "rlprof_frontend"
"""Key in the first scheduler's state: the answer of the process that serves requests."""
PLUGINS = "SGLANG_PLUGINS"
"""Environment variable: if it names plugins, SGLang loads only these."""


def longest_s(config: Mapping[str, Any]) -> float | None:
    """Return how long a window may be open by the limits of its run; None: unknown."""
    limits = config.get("limits") or {}
    try:
        return float(limits["window_s"]) + float(limits["stop_timeout_s"])
    except (KeyError, TypeError, ValueError):  # another release of rlprof wrote it
        return None
