"""What SGLang's profiler is asked in a scheduler, and which of it is refused there.

A scheduler that raises takes the whole engine with it. What would make one raise is refused, the
same on all ranks: where one of several does not take part, the others wait for it for ever.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import attrs

_MANAGERS = "sglang.srt.managers"
LONGEST_S = 3600

ours_until = 0.0
"""Until when, monotonic, a window of ours may be open, in this scheduler or in another one of the
engine; whoever opened it may be gone."""


@attrs.frozen
class Part:
    """Where a scheduler's profiler is."""

    path: str
    handler: str
    """Answers a request to profile."""
    stop: str
    """Ends a session, whoever asked for that: a request, or the profiler itself at a step."""


def profiler_part() -> Part:
    """Return where it is in this release."""
    new = f"{_MANAGERS}.scheduler_components.profiler_manager"
    if _is_there(new):
        return Part(f"{new}.SchedulerProfilerManager", "_profile", "_stop_profile")
    old = f"{_MANAGERS}.scheduler_profiler_mixin.SchedulerProfilerMixin"
    return Part(old, "profile", "stop_profile")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package
        return False


def part_of(scheduler: Any) -> Any:
    """Return what holds the profiler's state: since 0.5.13 a part of the scheduler."""
    return getattr(scheduler, "profiler_manager", scheduler)


def read(owner: Any, name: str) -> Any:
    """Return what *owner* has of that name; None: this release has it not, or nothing is there."""
    return getattr(owner, name, None)


def kind(request: Any) -> str:
    """Return what is asked: `req_type` since 0.5.15, `type` before."""
    found = read(request, "req_type") or read(request, "type")
    return str(getattr(found, "name", found))


def forward_ct(part: Any) -> int:
    """Return how many forward steps the scheduler has run."""
    count = read(part, "get_forward_ct")
    return int(count() if callable(count) else part.forward_ct)


def is_busy(part: Any) -> bool:
    """Whether a session runs or is armed; what a session that is over has left is neither."""
    if read(part, "profile_in_progress"):
        return True
    return is_armed(part)


def _has_stage_to_come(part: Any) -> bool:
    """Whether a stage has had no step: it begins with its first, and never again."""
    if not (read(part, "profile_by_stage") and read(part, "profiler_target_prefill_ct")):
        return False
    return 0 in (read(part, "profiler_prefill_ct"), read(part, "profiler_decode_ct"))


def _is_to_begin(part: Any) -> bool:
    start = read(part, "profiler_start_forward_ct")
    return bool(start) and start > forward_ct(part)


def is_armed(part: Any) -> bool:
    """Whether a session is to begin by itself: inside a recording of torch's it would crash.

    Also while one is on: by stage the other stage's comes after it.
    """
    return _has_stage_to_come(part) or _is_to_begin(part)


def harm(part: Any, request: Any) -> str:
    """Say why a scheduler would not survive a request, or what it would silently lose."""
    if time.monotonic() < ours_until:  # two torch profilers in a process end it
        return "a window of rlprof is open in this engine; ask again when it is over"
    if not hasattr(part, "profile_in_progress"):
        return "SGLANG_PROFILE_V2 is set, whose profiler ends the schedulers when it is stopped"
    if is_busy(part):
        return "somebody's session is already in progress; stop it first"
    count = read(request, "num_steps")
    if count is not None and count < 1:
        return f"num_steps is {count}; at least one is needed"
    if read(request, "profile_by_stage") and not count:
        return "profile_by_stage needs num_steps"
    names = read(request, "activities")
    return "" if names is None else harm_of(names)


def harm_of(names: list[str]) -> str:
    """Say the same of activities: what torch or a package of theirs would raise at."""
    if not names:
        return "activities is empty; nothing would be recorded"
    from torch import cuda

    has_cuda = cuda.is_available()
    needs = [name for name in names if name in ("MEM", "CUDA_PROFILER")]
    if needs and not has_cuda:
        return f"activities: {', '.join(needs)} need CUDA"
    if "RPD" in names and not (_is_there("rpdTracerControl") and _is_there("rocpd")):
        return "activities: RPD needs rpdTracerControl and rocpd"
    is_there = {"GPU": has_cuda or _has("npu"), "XPU": _has("xpu")}
    asked = [name for name in names if name in is_there]
    if asked and "CPU" not in names and not any(is_there[name] for name in asked):
        return f"activities: {', '.join(asked)} cannot be recorded here; add CPU"
    return ""


def _has(device: str) -> bool:
    import torch

    found = getattr(torch, device, None)
    return found is not None and bool(found.is_available())
