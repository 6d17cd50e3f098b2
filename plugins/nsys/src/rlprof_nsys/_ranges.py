"""NVTX ranges: phases in the report of nsys, and in range mode the edges of a window.

In range mode, `nsys start` waits for a range in the program and stops at its end
(`--capture-range-end=stop`), so each window has its report at once. Vendors' guides show `repeat`,
but it writes all reports at program exit.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError
from rlprof_nsys._arguments import DOMAIN, RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof_nsys._options import NsysOptions

_LONGEST = 200


@attrs.define(eq=False)
class Ranges:
    """The ranges of one window, in the domain `rlprof`.

    The text of a range is only the phase's name, because NVTX keeps every text forever. The payload
    is the step.
    """

    _nvtx: Any
    """The module; None: nsys sees no ranges."""
    applied: Mapping[str, Any]
    unsupported: Mapping[str, str]
    count: int = 0
    """The number of ranges opened."""

    def push(self, name: str, payload: Mapping[str, Any]) -> None:
        """Open a range on this thread."""
        if self._nvtx is not None:
            step = int(payload.get("step", 0))
            self._nvtx.push_range(range_text(name), domain=DOMAIN, payload=step)
            self.count += 1

    def pop(self) -> None:
        """Close the last range that this thread opened; core closes no other."""
        if self._nvtx is not None:
            self._nvtx.pop_range(domain=DOMAIN)


def range_text(name: str) -> str:
    """Return *name* in a form that NVTX can carry: valid UTF-8 without NUL, and not too long."""
    whole = name.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
    return whole[:_LONGEST]


def load_nvtx() -> tuple[Any, str]:
    """Import NVTX for Python; else return why there are no ranges."""
    try:
        import nvtx
    except Exception as exc:  # any fault of nvtx: nsys still records
        return None, f"no ranges of phases: nvtx cannot be imported: {exc}; pip install nvtx"
    if not getattr(nvtx, "enabled", lambda: True)():
        return None, "no ranges of phases: NVTX_DISABLE is set; unset it"
    return nvtx, ""


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
