"""Children of `os.fork`: without this they would never end, or crash at their end.

torch_npu waits at exit for the device, whose threads a child does not have: forked in a window it
hangs there, and after one it is aborted (2.13, bare as well, but where nothing has used the NPU).
Those of multiprocessing leave by `os._exit` and never get there.
"""

from __future__ import annotations

import atexit
import os
import sys
from functools import cache
from typing import Any
from weakref import WeakSet

_HOMES = ("torch_npu._init.core.runtime_lifecycle", "torch_npu")
"""Where what it does at exit is `_npu_shutdown`: in 2.13, and in earlier ones."""
_profiles: WeakSet[Any] = WeakSet()


def guard_forks(profile: Any) -> None:
    """Have children that are forked from now on end without the device, and without *profile*."""
    _profiles.add(profile)
    _register()


@cache
def _register() -> None:
    os.register_at_fork(after_in_child=_end_without_the_device)


def _end_without_the_device() -> None:
    """Leave out what waits for it, and what C++ would take down after that.

    Handlers run last in, first out, when Python has finished; what C has buffered is flushed.
    """
    import ctypes

    for profile in list(_profiles):
        profile.stopped = True  # else it stops itself as it is deleted
    for home in _HOMES:
        shutdown = getattr(sys.modules.get(home), "_npu_shutdown", None)
        if shutdown is not None:
            atexit.unregister(shutdown)
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit") and hasattr(libc, "__cxa_atexit"):  # glibc
        libc.on_exit(libc._exit, None)
        getattr(libc, "__cxa_atexit")(libc.fflush, None, None)
