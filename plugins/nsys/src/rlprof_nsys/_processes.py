"""Processes: the children of this one, which of them are nsys', their ends; forked or not."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """Become the parent of whatever below us loses its own."""
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0)
    except (OSError, AttributeError):
        return False


def children() -> Iterator[int]:
    """Go through the children of this process, adopted ones too."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == os.getpid() and fields[0] != b"Z":
                yield int(folder.name)


def end_all(is_ours: Callable[[int], bool], *, patience_s: float, within_s: float) -> None:
    """Kill those children that *is_ours* chooses, and those that become children by that.

    Not before *patience_s*: an nsys that is killed while it makes or changes the memory that all on
    a host share may spoil it for the others.
    """
    kind_until = time.monotonic() + patience_s
    end = kind_until + within_s
    while time.monotonic() < end:
        found = [pid for pid in children() if is_ours(pid)]
        if not found:
            return
        for pid in found if time.monotonic() >= kind_until else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        reap()


def has_tmpdir(pid: int, folder: str) -> bool:
    """Whether *pid* was born with TMPDIR *folder*: nsys' own processes are, the program's not."""
    try:
        return b"TMPDIR=" + os.fsencode(folder) in Path(f"/proc/{pid}/environ").read_bytes().split(
            b"\0"
        )
    except OSError:
        return False


def born_with_tmpdir(folder: str) -> Iterator[int]:
    """Go through the processes that were born with TMPDIR *folder*, whoever their parent is."""
    for one in Path("/proc").glob("[0-9]*"):
        if has_tmpdir(int(one.name), folder):
            yield int(one.name)


def has_open(pid: int, file: Path) -> bool:
    """Whether *pid* has *file* open, as far as that can be seen."""
    with suppress(OSError):
        there = file.stat()
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(one.stat(), there):
                    return True
    return False


def end(pid: int, is_ours: Callable[[int], bool]) -> None:
    """Kill *pid* if *is_ours* says so of the very process that is killed."""
    with suppress(OSError):
        held = os.pidfd_open(pid)  # its number cannot become another's from here on
        try:
            if is_ours(pid):
                signal.pidfd_send_signal(held, signal.SIGKILL)
        finally:
            os.close(held)


def reap() -> None:
    """Take leave of children that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def is_forked() -> bool:
    """Whether this process is a copy of its parent that never called `exec`.

    What the kernel hands a program at its start has addresses that no other start has again.
    """
    try:
        ours, parents = (Path(f"/proc/{pid}/auxv").read_bytes() for pid in ("self", os.getppid()))
    except OSError:
        return False
    return ours == parents
