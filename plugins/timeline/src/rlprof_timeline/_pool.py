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

from rlprof_timeline._merge import Group, Part, Stretch, move
from rlprof_timeline._progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

_SMALL = 8 << 20
"""Fewer bytes than this are not worth a second process."""
_LOOK_S = 0.2
_END_S = 5
"""A process that is killed may still hang in a file system."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT = 64 << 20


def move_all(groups: Sequence[Group], stretch: Stretch, folder: Path) -> list[Part]:
    """Move all groups into parts in *folder*, on all cores, and show the progress."""
    sizes = [sum(item.size() for item in group.items) for group in groups]
    progress = Progress(sum(len(group.items) for group in groups), sum(sizes))
    jobs = [(group, stretch, folder / f"{nth}.json.gz") for nth, group in enumerate(groups)]
    workers = min(len(jobs), _cores())
    if workers < 2 or sum(sizes) < _SMALL or not _can_be_copied():
        return _alone(jobs, progress)
    # The largest first: else the last one keeps one core busy and the others wait.
    order = sorted(range(len(jobs)), key=lambda nth: -sizes[nth])
    return _together(jobs, order, workers, progress)


def _alone(jobs: Sequence[tuple[Group, Stretch, Path]], progress: Progress) -> list[Part]:
    done = [0, 0]

    def tell(files: int, size: int) -> None:
        done[0] += files
        done[1] += size
        progress.show(*done)

    return [move(*job, tell) for job in jobs]


def _together(
    jobs: Sequence[tuple[Group, Stretch, Path]],
    order: Sequence[int],
    workers: int,
    progress: Progress,
) -> list[Part]:
    context: Any = multiprocessing.get_context("fork")
    files, size = context.Value("q", 0), context.Value("q", 0)
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(files, size))
    try:
        futures = {nth: pool.submit(_move, *jobs[nth]) for nth in order}
        waiting = set(futures.values())
        while waiting:
            waiting = wait(waiting, _LOOK_S).not_done
            progress.show(files.value, size.value)
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


_done: list[Any] = []
"""In a worker: the files and bytes done, shared by all."""


def _begin(files: Any, size: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and callable(signal.getsignal(number)):  # also its handlers are his
            signal.signal(number, signal.SIG_DFL)
    Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    _done[:] = [files, size]
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


def _move(group: Group, stretch: Stretch, path: Path) -> Part:
    return move(group, stretch, path, _tell)


def _tell(*counts: int) -> None:
    for count, shared in zip(counts, _done, strict=True):
        with shared.get_lock():
            shared.value += count


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
