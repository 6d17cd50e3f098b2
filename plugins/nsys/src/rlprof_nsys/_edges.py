"""Range mode: a range in the program sets the edges of a window, instead of calls to nsys.

`nsys start` waits for the range and stops at its end (`--capture-range-end=stop`), so each window
has its report at once. Vendors' guides show `repeat`, but it writes all reports at program exit.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_nsys._mark import DOMAIN, RANGE

if TYPE_CHECKING:
    from rlprof_nsys._options import NsysOptions


class Edge:
    """Tells nsys that the window opens and closes."""

    def __init__(self, kind: str) -> None:
        self.options = (f"--capture-range={kind}", "--capture-range-end=stop")

    def begin(self) -> None:
        """Open the window."""
        raise NotImplementedError

    def end(self) -> None:
        """Close the window, on any thread."""
        raise NotImplementedError


class NvtxEdge(Edge):
    """An NVTX range."""

    def __init__(self, nvtx: Any) -> None:
        super().__init__("nvtx")
        self._nvtx = nvtx
        self._range: Any = None

    def begin(self) -> None:
        """Start a range that another thread may end."""
        self._range = self._nvtx.start_range(RANGE, domain=DOMAIN)

    def end(self) -> None:
        """End the range."""
        self._nvtx.end_range(self._range)


class CudaEdge(Edge):
    """`cudaProfilerStart` and `cudaProfilerStop`."""

    def __init__(self, profiler: Any) -> None:
        super().__init__("cudaProfilerApi")
        self._profiler = profiler

    def begin(self) -> None:
        """Call `cudaProfilerStart`."""
        self._profiler.start()

    def end(self) -> None:
        """Call `cudaProfilerStop`."""
        self._profiler.stop()


def edge_of(options: NsysOptions, nvtx: Any) -> Edge | None:
    """Return the edges of a window; None: calls to nsys are the edges."""
    if options.mode != "range":
        return None
    if options.range == "nvtx":
        if nvtx is None:
            raise CaptureError("range: nvtx: nsys sees no nvtx in this process; pip install nvtx")
        return NvtxEdge(nvtx)
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        raise CaptureError(
            "range: cudaProfilerApi: needs torch imported and a CUDA device; else set range: nvtx"
        )
    return CudaEdge(torch.cuda.profiler)
