"""The recording that `start` returns: phases become NVTX ranges in the report of nsys."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from rlprof_nsys._mark import DOMAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 200


class Ranges:
    """The ranges of one window, in the domain `rlprof`.

    A range's text is the phase's name alone, for NVTX keeps every text for ever; its payload is the
    step.
    """

    def __init__(
        self, nvtx: Any, applied: Mapping[str, Any], unsupported: Mapping[str, str]
    ) -> None:
        self.applied = applied
        self.unsupported = unsupported
        self.count = 0
        """Ranges that were opened."""
        self._nvtx = nvtx
        self._open: dict[int, int] = {}
        """How many each thread has open."""
        self._lock = threading.Lock()

    def push(self, name: str, payload: Mapping[str, Any]) -> None:
        """Open a range on this thread."""
        if self._nvtx is None:
            return
        thread = threading.get_ident()
        step = payload.get("step", 0)
        self._nvtx.push_range(range_text(name), domain=DOMAIN, payload=int(step))
        with self._lock:
            self.count += 1
            self._open[thread] = self._open.get(thread, 0) + 1

    def pop(self) -> None:
        """Close the range this thread has opened last, if it has one open."""
        thread = threading.get_ident()
        with self._lock:
            left = self._open.get(thread, 0)
            if not left:
                return
            self._open[thread] = left - 1
        self._nvtx.pop_range(domain=DOMAIN)


def range_text(name: str) -> str:
    """Make *name* what NVTX can carry: UTF-8 that ends where it ends."""
    whole = name.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
    return whole[:_LONGEST] or "unnamed"


def load_nvtx() -> tuple[Any, str]:
    """Import NVTX for Python; or say why there are no ranges."""
    try:
        import nvtx
    except Exception as exc:  # whatever is wrong with it, nsys records all the same
        return None, f"no ranges of phases: nvtx cannot be imported: {exc}; pip install nvtx"
    if not getattr(nvtx, "enabled", lambda: True)():
        return None, "no ranges of phases: NVTX_DISABLE is set; unset it"
    return nvtx, ""
