"""The tie of a driver to its Ray: whether what was made in it can still be asked.

Ray connects by itself whenever it is asked for something, so after `ray.shutdown()` the first ask
would start another Ray; nothing may be asked then.
"""

from __future__ import annotations

CUT = "Ray was shut down in the driver"
"""Why nobody can be asked any more."""


def tie() -> tuple[str, str] | None:
    """Name the Ray this process is connected to; None: to none."""
    import ray

    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return context.get_job_id(), context.get_node_id()  # the first job of each Ray has one id
