"""Refuses profile requests that a scheduler would not survive.

A scheduler that raises ends the whole engine. So a request that would make one raise is refused, on
all ranks alike: if one rank does not take part, the others wait for it forever. All of these end
a scheduler of SGLang 0.5.18 to 0.5.23.
"""

from __future__ import annotations

import time
from typing import Any

PART = "sglang.srt.managers.scheduler_components.profiler_manager.SchedulerProfilerManager"
"""The part of a scheduler that has its profiler."""
HANDLER = "_profile"
"""Its method that answers a profile request."""
STOP = "_stop_profile"
"""Its method that ends a session, for a request or for the profiler itself at a step."""
LONGEST_S = 3600

ours_until = 0.0
"""Monotonic time until which a window of ours may be open, in any scheduler of the engine; the run
that opened it may be gone."""


def read(owner: Any, name: str) -> Any:
    """Return attribute *name* of *owner*; None: this release does not have it, or it is None."""
    return getattr(owner, name, None)


def kind(request: Any) -> str:
    """Return the kind of *request*."""
    found = read(request, "req_type")
    return str(getattr(found, "name", found))


def forward_ct(part: Any) -> int:
    """Return how many forward steps the scheduler has run."""
    return int(part.get_forward_ct())


def is_busy(part: Any) -> bool:
    """Whether a session runs or is armed; what a finished session left does not count."""
    return bool(read(part, "profile_in_progress")) or is_armed(part)


def is_armed(part: Any) -> bool:
    """Whether a session will begin by itself; inside a torch recording, it would crash.

    This can be so while a session runs: by stage, the other's begins at its own first step.
    """
    by_stage = read(part, "profile_by_stage") and read(part, "profiler_target_prefill_ct")
    if by_stage and 0 in (read(part, "profiler_prefill_ct"), read(part, "profiler_decode_ct")):
        return True
    start = read(part, "profiler_start_forward_ct")
    return bool(start) and start > forward_ct(part)


def harm(part: Any, request: Any) -> str:
    """Say why a scheduler would not survive a request, or what it would silently lose."""
    if time.monotonic() < ours_until:  # two torch profilers crash a process
        return "a window of rlprof is open in this engine; ask again when it is over"
    if not hasattr(part, "profile_in_progress"):
        return "SGLANG_PROFILE_V2 is set; its profiler ends the schedulers when it is stopped"
    if is_busy(part):
        return "somebody's session is already in progress; stop it first"
    if read(request, "profile_by_stage") and not read(request, "num_steps"):
        return "profile_by_stage needs num_steps"
    return ""
