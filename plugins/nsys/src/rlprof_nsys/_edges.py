"""Range mode: a window's edges are those of a range in the program, not of a call from outside.

`nsys start` waits for the range and ends with it (`--capture-range-end=stop`), so that each window
has its report at once. `repeat`, which vendors' guides show, writes them when the program exits.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_nsys._mark import DOMAIN, RANGE

if TYPE_CHECKING:
    from rlprof_nsys._options import NsysOptions


class Edge:
    """What tells nsys that the window begins and ends."""

    def __init__(self, kind: str) -> None:
        self.options = (f"--capture-range={kind}", "--capture-range-end=stop")

    def begin(self) -> None:
        """Begin the window."""
        raise NotImplementedError

    def end(self) -> None:
        """End it, on whatever thread."""
        raise NotImplementedError


class NvtxEdge(Edge):
    """A range of NVTX."""

    def __init__(self, nvtx: Any) -> None:
        super().__init__("nvtx")
        self._nvtx = nvtx
        self._range: Any = None

    def begin(self) -> None:
        """Begin a range that another thread may end."""
        self._range = self._nvtx.start_range(RANGE, domain=DOMAIN)

    def end(self) -> None:
        """End it."""
        self._nvtx.end_range(self._range)


class CudaEdge(Edge):
    """`cudaProfilerStart` and `cudaProfilerStop`."""

    def __init__(self, profiler: Any) -> None:
        super().__init__("cudaProfilerApi")
        self._profiler = profiler

    def begin(self) -> None:
        """Call the one."""
        self._profiler.start()

    def end(self) -> None:
        """Call the other."""
        self._profiler.stop()


def edge_of(options: NsysOptions, nvtx: Any) -> Edge | None:
    """Return what a window's edges are; None: the calls of nsys themselves."""
    if options.mode != "range":
        return None
    if options.range == "nvtx":
        if nvtx is None:
            raise CaptureError("range: nvtx: there is no nvtx that nsys sees; pip install nvtx")
        return NvtxEdge(nvtx)
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        raise CaptureError(
            "range: cudaProfilerApi: needs torch, imported, and a CUDA device; or range: nvtx"
        )
    return CudaEdge(torch.cuda.profiler)
