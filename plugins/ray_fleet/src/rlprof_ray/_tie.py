"""The tie of a driver to its Ray: whether what was made in it can still be asked.

Ray connects by itself whenever it is asked for something, so after `ray.shutdown()` the first ask
would start another Ray; nothing may be asked then.
"""

from __future__ import annotations

import atexit
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CUT = "Ray was shut down in the driver"
"""Why nobody can be asked any more."""


def tie() -> tuple[str, str] | None:
    """Name the Ray this process is connected to; None: to none."""
    import ray

    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return context.get_job_id(), context.get_node_id()  # the first job of each Ray has one id


def hold(close: Callable[[], None]) -> Callable[[], None]:
    """Have *close* called before Ray ends in this process; return what undoes that.

    Ray has no hook for it, and kills actors at once: what they hold in memory would be lost. So
    `ray.shutdown` is another function for as long as a fleet is open. At the end of the process
    what was registered last comes first; Ray has registered its own when it was imported.
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
        if ray.shutdown is shutdown:  # else somebody has put another in its place
            ray.shutdown = own

    ray.shutdown = shutdown
    atexit.register(close)
    return undo
