"""Children of `os.fork` that exit by themselves: recording must not make them hang or crash.

A profiler of torch_npu stops itself when it is deleted, and waits there for a device whose
threads a forked child does not have. It also initialises the NPU, after which torch_npu's C++
destructors abort a child at exit. Children of multiprocessing leave by `os._exit` and are safe.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any
from weakref import WeakSet

_profiles: WeakSet[Any] = WeakSet()


def guard_forks(profile: Any) -> None:
    """Let children forked from now on exit without *profile* and without those destructors."""
    _profiles.add(profile)
    _register()


@cache
def _register() -> None:
    os.register_at_fork(after_in_child=_exit_early)


def _exit_early() -> None:
    """Exit with the status there is, after Python has finished and C's buffers are flushed.

    Handlers run last in, first out.
    """
    import ctypes

    for profile in list(_profiles):
        profile.stopped = True
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit") and hasattr(libc, "__cxa_atexit"):  # glibc
        libc.on_exit(libc._exit, None)
        getattr(libc, "__cxa_atexit")(libc.fflush, None, None)
