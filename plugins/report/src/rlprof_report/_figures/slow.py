"""Those that the others wait for: the slowest one, several together, or all of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report._plain import listed
from rlprof_run import ranges_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


def slow_of(seconds: ArrayLike, hosts: Sequence[str] | np.ndarray) -> tuple[list[int], str]:
    """Return the places of those that the others wait for, and their host if they are all there.

    They are all of one host; or a few, half of all at most, that are far from the others; or the
    slowest one. An empty host is unknown.
    """
    took, where = np.asarray(seconds), np.asarray(hosts)
    slowest = int(took.argmax())
    half_s = (took[slowest] - np.median(np.delete(took, slowest))) / 2
    slow = took > took[slowest] - half_s
    if 1 < slow.sum() < len(slow):
        if hosts[slowest] and np.array_equal(slow, where == hosts[slowest]):
            return np.flatnonzero(slow).tolist(), str(hosts[slowest])
        if 2 * slow.sum() <= len(slow) and took[slow].min() - took[~slow].max() >= half_s:
            return np.flatnonzero(slow).tolist(), ""
    return [slowest], ""


def together(ranks: Sequence[int], host: str, of: str = "") -> str:
    """Name several of them: `the 2 ranks of actor on node-1`, `ranks 2-3 of actor`."""
    if host:
        return f"the {len(ranks)} ranks{of} on {host}"
    return f"ranks {listed(ranges_of(ranks))}{of}"
