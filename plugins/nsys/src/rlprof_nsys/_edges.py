"""Range mode: a range in the program sets the edges of a window, instead of calls to nsys.

`nsys start` waits for the range and stops at its end (`--capture-range-end=stop`), so each window
has its report at once. Vendors' guides show `repeat`, but it writes all reports at program exit.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError
from rlprof_nsys._mark import DOMAIN, RANGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof_nsys._options import NsysOptions


@attrs.frozen
class Edge:
    """Tells nsys that the window opens and closes."""

    kind: str
    begin: Callable[[], object]
    end: Callable[[], object]
    """On any thread."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options for `nsys start`."""
        return f"--capture-range={self.kind}", "--capture-range-end=stop"


def edge_of(options: NsysOptions, nvtx: Any) -> Edge | None:
    """Return the edges of a window; None: calls to nsys are the edges."""
    if options.mode != "range":
        return None
    if options.range == "nvtx":
        if nvtx is None:
            raise CaptureError("range: nvtx: nsys sees no nvtx in this process; pip install nvtx")
        opened: list[Any] = []
        return Edge(
            "nvtx",
            lambda: opened.append(nvtx.start_range(RANGE, domain=DOMAIN)),
            lambda: nvtx.end_range(opened.pop()),
        )
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        raise CaptureError(
            "range: cudaProfilerApi: needs torch imported and a CUDA device; else set range: nvtx"
        )
    return Edge("cudaProfilerApi", torch.cuda.profiler.start, torch.cuda.profiler.stop)
