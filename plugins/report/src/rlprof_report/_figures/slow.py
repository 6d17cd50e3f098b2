"""Those that the others wait for: the slowest one, several together, or all of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._figures.waits import slowest_of
from rlprof_report._plain import listed
from rlprof_run import ranges_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def slow_of(seconds: Sequence[float], hosts: Sequence[str]) -> tuple[list[int], str]:
    """Return the places of those that the others wait for, and their host if they are all there.

    They are all of one host; or a few, half of all at most, that are far from the others; or the
    slowest one. An empty host is unknown.
    """
    slowest, more = slowest_of(seconds)
    edge, host = seconds[slowest] - more / 2, hosts[slowest]
    slow = [place for place, took in enumerate(seconds) if took > edge]
    if 1 < len(slow) < len(seconds):
        if host and slow == [place for place, one in enumerate(hosts) if one == host]:
            return slow, host
        apart = min(seconds[place] for place in slow) - max(one for one in seconds if one <= edge)
        if 2 * len(slow) <= len(seconds) and 2 * apart >= more:
            return slow, ""
    return [slowest], ""


def together(ranks: Sequence[int], host: str, of: str = "") -> str:
    """Name several of them: `the 2 ranks of actor on node-1`, `ranks 2-3 of actor`."""
    if host:
        return f"the {len(ranks)} ranks{of} on {host}"
    return f"ranks {listed(ranges_of(ranks))}{of}"
