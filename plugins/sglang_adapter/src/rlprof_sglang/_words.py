"""What the plugin and its part in the schedulers say to each other.

SGLang carries one thing to every scheduler, by every way to it: a request to profile. So an order
is such a request, whose folder is no folder; the answer is in what a scheduler says of its state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCH = "RLPROF_SGLANG"
"""Environment: our part in the schedulers does something only where this is 1."""
MARK = "rlprof:"
"""Begins what stands in a request to profile instead of a folder; JSON follows."""
STATE = "rlprof"
"""Key in a scheduler's state."""
PLUGIN = "rlprof"
"""Our name among SGLang's plugins, which SGLANG_PLUGINS may have to admit."""


def longest_s(config: Mapping[str, Any]) -> float | None:
    """Return how long a window may be open by the limits of its run; None: they are not given."""
    limits = config.get("limits") or {}
    try:
        return float(limits["window_s"]) + float(limits["stop_timeout_s"])
    except (KeyError, TypeError, ValueError):  # another release of rlprof has written it
        return None
