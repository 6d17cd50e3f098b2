"""A session of ours that nobody has ended: whoever asked for it is gone, and it fills the memory.

A scheduler alone ends it by itself. Where several are one engine, each would do so at another step,
and wait there for the others for ever; there the next run that comes has all of them end it.
"""

from __future__ import annotations

import time
from typing import Any

from rlprof_sglang._refusals import profiler_part, read

_until = 0.0
"""Until when, monotonic, the session may be on; 0: for ever, for it is somebody else's."""


def bound(longest_s: object) -> None:
    """Let the session that begins now run for this long; None: the limit is unknown."""
    global _until  # noqa: PLW0603 -- one profiler to a process
    is_said = isinstance(longest_s, (int, float))
    _until = time.monotonic() + float(longest_s) if is_said else 0.0  # type: ignore[arg-type]


def is_overdue(part: Any) -> bool:
    """Whether a session of ours is on that nobody will end any more."""
    return bool(_until and time.monotonic() > _until and read(part, "profile_in_progress"))


def ends(part: Any) -> bool:
    """End an overdue session of a scheduler alone; by stage its own count ends it."""
    if not is_overdue(part) or read(part, "profile_by_stage"):
        return False
    getattr(part, profiler_part().stop)()
    return True
