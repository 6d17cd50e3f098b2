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

    The text of a range is only the phase's name, because NVTX keeps every text forever. The payload
    is the step.
    """

    def __init__(
        self, nvtx: Any, applied: Mapping[str, Any], unsupported: Mapping[str, str]
    ) -> None:
        self.applied = applied
        self.unsupported = unsupported
        self.count = 0
        """The number of ranges opened."""
        self._nvtx = nvtx
        self._open: dict[int, int] = {}
        """The number of open ranges on each thread."""
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
        """Close the last range that this thread opened, if one is open."""
        thread = threading.get_ident()
        with self._lock:
            left = self._open.get(thread, 0)
            if not left:
                return
            self._open[thread] = left - 1
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
