"""The connection of a driver to its Ray: whether its actors can still be asked.

Ray connects by itself at any call, so the first call after `ray.shutdown()` would start another
Ray; nothing may be asked then.
"""

from __future__ import annotations

import atexit
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CUT = "Ray was shut down in the driver"
"""Why no member can be asked any more."""


def tie() -> tuple[str, str] | None:
    """Name the Ray that this process is connected to; None: it is not connected."""
    import ray

    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return context.get_job_id(), context.get_node_id()  # the first job of each Ray has one id


def hold(close: Callable[[], None]) -> Callable[[], None]:
    """Call *close* before Ray ends in this process; return a function that undoes this.

    Ray has no hook for it, and kills actors at once: their data in memory would be lost. So
    `ray.shutdown` is replaced while a fleet is open. At the end of the process, functions run in
    reverse order of registration; Ray registered its function when it was imported.
    """
    import ray

    own = ray.shutdown

    @functools.wraps(own)
    def shutdown(*args: Any, **kwargs: Any) -> None:
        try:
            close()
        finally:
            own(*args, **kwargs)

    def undo() -> None:
        atexit.unregister(close)
        if ray.shutdown is shutdown:  # else it was replaced again
            ray.shutdown = own

    ray.shutdown = shutdown
    atexit.register(close)
    return undo
