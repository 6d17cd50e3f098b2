"""The recording that `start` returns: phases become NVTX ranges in the report of nsys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof_nsys._mark import DOMAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

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
