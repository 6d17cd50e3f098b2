"""Which rank came last to the collectives of a window (figure 18).

The rank that came last waits least: its call is the shortest. msprof-analyze votes the same way; no
common clock is needed for it.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from rlprof_report.device.values import LateRank

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlprof_report.device._trace import Meeting

_LEAST_NS = 10_000


def late_ranks(
    role: str, window: str, ranks: Mapping[int, Sequence[Meeting]]
) -> Iterator[LateRank]:
    """Compare the collectives that the ranks of one role had in one window."""
    by_rank = {rank: _by_what(meetings) for rank, meetings in ranks.items()}
    late: defaultdict[int, int] = defaultdict(int)
    votes: defaultdict[int, int] = defaultdict(int)
    took_part: defaultdict[int, int] = defaultdict(int)
    spreads: defaultdict[int, list[int]] = defaultdict(list)
    for what in sorted({what for own in by_rank.values() for what in own}):
        there = {rank: own[what] for rank, own in by_rank.items() if what in own}
        if len(there) < 2 or len({len(ones) for ones in there.values()}) > 1:
            continue  # of another group of ranks, or not recorded from the same moment on
        for ones in zip(*there.values(), strict=True):
            times = {rank: one.end_ns - one.start_ns for rank, one in zip(there, ones, strict=True)}
            longest = max(times.values())
            last = min(times, key=lambda rank: times[rank])
            votes[last] += longest - times[last] >= _LEAST_NS
            ends = [one.end_ns for one in ones]
            for rank, time in times.items():
                late[rank] += longest - time
                took_part[rank] += 1
                spreads[rank].append(max(ends) - min(ends))
    for rank, count in took_part.items():
        spread = median(spreads[rank]) / 1e9
        yield LateRank(role, window, rank, late[rank] / 1e9, votes[rank], count, spread)


def _by_what(meetings: Sequence[Meeting]) -> dict[tuple[str, str], list[Meeting]]:
    found: defaultdict[tuple[str, str], list[Meeting]] = defaultdict(list)
    for meeting in meetings:
        found[meeting.what].append(meeting)
    return found
