"""By stage: between the end of one stage's session and the beginning of the next lies a step.

Torch writes into its session when a range ends that was begun in it, without a look whether that
session is over and its memory given back. Since 0.5.14 SGLang runs each step in a range, and ends
one session and begins the next inside: so a scheduler's memory is overwritten, and it dies at once,
later, or not.
"""

from __future__ import annotations

from typing import Any

from rlprof_sglang._refusals import profiler_part, read


def waits(part: Any, batch: Any) -> bool:
    """Whether *batch* is none of the session that is on; prefill's is ended by the first decode.

    Left to itself, SGLang would end the session that is on by the count of the other stage, and
    write its trace over the other's.
    """
    if not (read(part, "profile_by_stage") and read(part, "profile_in_progress")):
        return False
    mode, most = batch.forward_mode, part.profiler_target_prefill_ct
    is_of_prefill = 0 < part.profiler_prefill_ct <= most
    if mode.is_decode() and is_of_prefill:
        part.profiler_prefill_ct = most + 1
        getattr(part, profiler_part().stop)(stage=type(mode).EXTEND)
        return True
    return bool(mode.is_prefill() and not is_of_prefill)
