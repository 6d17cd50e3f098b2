"""What the requests of an engine's replica waited for, in the windows that recorded them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlprof_report._engine_requests import preemptions_of
from rlprof_report.device.values import RequestTimes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof import Target


def times_of(target: Target, requests: Sequence[dict[str, Any]]) -> RequestTimes:
    """Sum up the *requests* of one replica (figure 15)."""
    queue = [one["prefill_ns"] - one["start_ns"] for one in requests if "prefill_ns" in one]
    first = [one["decode_ns"] - one["start_ns"] for one in requests if "decode_ns" in one]
    counts = [count for one in requests if (count := preemptions_of(one)) is not None]
    return RequestTimes(
        target=str(target),
        role=target.role,
        replica=target.replica,
        count=len(requests),
        finished=sum("unfinished" not in one for one in requests),
        queue_p50_s=_percentile(queue, 50),
        queue_p99_s=_percentile(queue, 99),
        first_token_p50_s=_percentile(first, 50),
        first_token_p99_s=_percentile(first, 99),
        preemptions=sum(counts) if counts else None,
    )


def _percentile(values: Sequence[int], share: float) -> float | None:
    return float(np.percentile(values, share)) / 1e9 if values else None
