"""Groups of traces on all cores, each moved in a separate process.

Separate because `_merge.py` need not know how many processes there are.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import connection
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from rlprof_timeline._merge import move
from rlprof_timeline._progress import print_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_timeline._merge import Group, Part, Stretch

_SMALL = 8 << 20
"""Fewer bytes than this are not worth a second process."""
_EVERY_S = 5
"""Between two words on the progress."""
_END_S = 5
"""A process that is killed may still hang in a file system."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT = 64 << 20


def move_all(groups: Sequence[Group], stretch: Stretch, folder: Path) -> list[Part]:
    """Move all groups into parts in *folder*, on all cores, and show the progress."""
    paths = [[trace.path for trace in group.traces if trace.path.exists()] for group in groups]
    sizes = [sum(path.stat().st_size for path in ones) for ones in paths]
    jobs = [(group, stretch, folder / f"{nth}.json.gz") for nth, group in enumerate(groups)]
    workers = min(len(jobs), _cores())
    if workers < 2 or sum(sizes) < _SMALL or not _can_be_copied():
        return [move(*job) for job in jobs]
    context: Any = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, context, initializer=_begin)
    try:
        # The largest first: else the last one keeps one core busy and the others wait.
        order = sorted(range(len(jobs)), key=lambda nth: -sizes[nth])
        futures = {nth: pool.submit(move, *jobs[nth]) for nth in order}
        while waiting := wait(futures.values(), _EVERY_S).not_done:
            print_progress(
                sum(sizes[nth] for nth in order if futures[nth] not in waiting), sum(sizes)
            )
        return [futures[nth].result() for nth in range(len(jobs))]
    except BrokenProcessPool:  # the system took one of them for its memory
        raise MemoryError("a process that read traces was killed; export less: --step") from None
    finally:
        processes = list((pool._processes or {}).values())  # noqa: SLF001 -- Ctrl-C ends them now
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:  # what they write to may be written anew
            process.join(_END_S)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):  # also its handlers are his
            signal.signal(number, signal.SIG_DFL)
    Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    with suppress(OSError, AttributeError):  # not glibc
        # Memory is kept from batch to batch: to give it back and get it anew is an eighth of all.
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        mallopt(_M_MMAP_THRESHOLD, _KEPT)


def _end_with(parent: Any) -> None:
    """End this worker when its parent has ended: it would wait for work forever."""
    connection.wait([parent.sentinel])
    os._exit(1)


def _can_be_copied() -> bool:
    """Whether a copy of this process works: with other threads, it might have their locks.

    Import numpy, without threads of its own, for all copies.
    """
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    try:
        import numpy  # noqa: F401, ICN001
    finally:
        del os.environ["OPENBLAS_NUM_THREADS"]
        if before is not None:
            os.environ["OPENBLAS_NUM_THREADS"] = before
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:  # not Linux
        return False


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # not Linux
