"""The captures of a role together: sums, ranks that came last, requests of a replica."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np

from rlprof_report._slices import preemptions_of
from rlprof_report.device._tops import together, tops
from rlprof_report.device.values import (
    Idle,
    LateRank,
    MemoryPeak,
    RequestTimes,
    RoleDevice,
    Temporal,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlprof import Target
    from rlprof_report.device._trace import Meeting, TraceFigures
    from rlprof_report.device.values import CaptureDevice

_Sums = TypeVar("_Sums", Temporal, Idle)
_LEAST_NS = 10_000


def by_role(looked: Iterable[tuple[CaptureDevice, TraceFigures]]) -> Iterator[RoleDevice]:
    """Add up the figures of the traces of each role."""
    roles: defaultdict[str, list[TraceFigures]] = defaultdict(list)
    for shown, found in looked:
        roles[shown.role].append(found)
    for role, ones in sorted(roles.items()):
        temporals = [one.temporal for one in ones if one.temporal is not None]
        idles = [one.idle for one in ones if one.idle is not None]
        yield RoleDevice(
            role,
            len(temporals),
            _sum(temporals),
            _sum(idles),
            tops(together(one.kernels for one in ones)),
            tops(together(one.operators for one in ones)),
            tuple(_largest([peak for one in ones for peak in one.memory])),
        )


def _sum(ones: Sequence[_Sums]) -> _Sums | None:
    if not ones:
        return None
    rows = [attrs.astuple(one) for one in ones]
    return type(ones[0])(*(sum(column) for column in zip(*rows, strict=True)))


def _largest(peaks: Sequence[MemoryPeak]) -> Iterator[MemoryPeak]:
    devices = sorted({peak.device for peak in peaks})
    for device in devices:
        mine = [peak for peak in peaks if peak.device == device]
        allocated = max(peak.allocated_bytes for peak in mine)
        reserved = max(peak.reserved_bytes for peak in mine)
        yield MemoryPeak(device, allocated, reserved)


def times_of(target: Target, requests: Sequence[dict[str, Any]]) -> RequestTimes:
    """Sum up the *requests* of one replica (figure 15)."""
    queue = [one["prefill_ns"] - one["start_ns"] for one in requests if "prefill_ns" in one]
    first = [one["decode_ns"] - one["start_ns"] for one in requests if "decode_ns" in one]
    counts = [count for one in requests if (count := preemptions_of(one)) is not None]
    return RequestTimes(
        target=str(target),
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


def late_ranks(
    role: str, window: str, ranks: Mapping[int, Sequence[Meeting]]
) -> Iterator[LateRank]:
    """Compare the collectives that the ranks of one role had in one window."""
    by_rank = {rank: _by_what(meetings) for rank, meetings in ranks.items()}
    late, votes, took_part = Counter[int](), Counter[int](), Counter[int]()
    for what in sorted({what for own in by_rank.values() for what in own}):
        there = {rank: own[what] for rank, own in by_rank.items() if what in own}
        if len(there) < 2 or len({len(ones) for ones in there.values()}) > 1:
            continue  # of another group of ranks, or not recorded from the same moment on
        for ones in zip(*there.values(), strict=True):
            times = dict(zip(there, ones, strict=True))
            longest = max(ones)
            last = min(times, key=lambda rank: times[rank])
            votes[last] += longest - times[last] >= _LEAST_NS
            late.update({rank: longest - time for rank, time in times.items()})
            took_part.update(list(there))
    for rank, count in took_part.items():
        yield LateRank(role, window, rank, late[rank] / 1e9, votes[rank], count)


def _by_what(meetings: Sequence[Meeting]) -> dict[tuple[str, str], list[int]]:
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for what, took in meetings:
        found[what].append(took)
    return found
