"""The processes that nsys leaves with the keeper, and whether this process was forked."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of each process below this one that loses its own."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_children(*, patience_s: float, within_s: float) -> None:
    """Wait *patience_s* for the children of this process to end, adopted ones too; then kill them.

    Call it where each child is nsys' own: the keeper has no others.
    """
    kind_until = time.monotonic() + patience_s
    end = kind_until + within_s
    while time.monotonic() < end:
        found = list(_children())
        if not found:
            return
        for pid in found if time.monotonic() >= kind_until else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        _reap()


def is_forked() -> bool:
    """Whether this process is a copy of its parent that never called `exec`.

    What the kernel hands a program at its start has addresses that no other start has again.
    """
    try:
        ours, parents = (Path(f"/proc/{pid}/auxv").read_bytes() for pid in ("self", os.getppid()))
    except OSError:
        return False
    return ours == parents


def _children() -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == os.getpid() and fields[0] != b"Z":
                yield int(folder.name)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
