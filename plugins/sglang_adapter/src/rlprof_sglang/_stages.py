"""By stage: leaves a step between the end of one stage's session and the start of the next.

When a range ends, torch writes into the session in which the range began. It does not check whether
that session is over and its memory is freed. SGLang runs each step in a range, and
inside it ends one session and begins the next. That overwrites a scheduler's memory: the scheduler
dies at once, later, or not at all.
"""

from __future__ import annotations

from typing import Any

from rlprof_sglang._refusals import STOP, read


def waits(part: Any, batch: Any) -> bool:
    """Whether *batch* does not belong to the running session; the first decode ends prefill's.

    By itself, SGLang would end the running session by the count of the other stage, and overwrite
    the other stage's trace.
    """
    if not (read(part, "profile_by_stage") and read(part, "profile_in_progress")):
        return False
    mode, most = batch.forward_mode, part.profiler_target_prefill_ct
    is_of_prefill = 0 < part.profiler_prefill_ct <= most
    if mode.is_decode() and is_of_prefill:
        part.profiler_prefill_ct = most + 1
        getattr(part, STOP)(stage=type(mode).EXTEND)
        return True
    return bool(mode.is_prefill() and not is_of_prefill)
