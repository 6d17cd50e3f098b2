"""Ends a session of ours whose run is gone: it would fill the memory.

A single scheduler ends it by itself. Several schedulers of one engine would each end it at another
step, and wait there forever for the others. So the next run makes all of them end it.
"""

from __future__ import annotations

import time
from typing import Any

from rlprof_sglang._refusals import STOP, read

_until = 0.0
"""Monotonic time until which the session may last; 0: forever, as it is somebody else's."""


def bound(longest_s: object) -> None:
    """Let the session that begins now run for this long; None: the limit is unknown."""
    global _until  # noqa: PLW0603 -- one profiler to a process
    is_said = isinstance(longest_s, (int, float))
    _until = time.monotonic() + float(longest_s) if is_said else 0.0  # type: ignore[arg-type]


def is_overdue(part: Any) -> bool:
    """Whether a session of ours runs that nobody will end."""
    return bool(_until and time.monotonic() > _until and read(part, "profile_in_progress"))


def ends(part: Any) -> bool:
    """End an overdue session of a single scheduler; by stage, its own count ends it."""
    if not is_overdue(part) or read(part, "profile_by_stage"):
        return False
    getattr(part, STOP)()
    return True
