"""Children of `os.fork`: without this they would never end once Kineto has recorded.

Kineto keeps a thread; a forked child has none, and at exit Kineto's destructor waits for it for
ever: bare torch 2.6, 2.8, 2.10, 2.13 and 2.14 (gdb: `ConfigLoader::~ConfigLoader`,
`pthread_cond_destroy`). Those of multiprocessing leave by `os._exit` and never get there.
"""

from __future__ import annotations

import os
from functools import cache


@cache
def guard_forks() -> None:
    """Have forked children end before Kineto's destructor runs; once for a process."""
    os.register_at_fork(after_in_child=_end_before_kineto)


def _end_before_kineto() -> None:
    """Leave, with the current exit status, before functions that were registered earlier run.

    Handlers run last in, first out, when Python has finished; what C has buffered is flushed.
    """
    import ctypes

    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit") and hasattr(libc, "__cxa_atexit"):  # glibc
        libc.on_exit(libc._exit, None)
        getattr(libc, "__cxa_atexit")(libc.fflush, None, None)
