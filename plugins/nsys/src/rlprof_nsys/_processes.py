"""Other processes: whether one is alive, and those that nsys leaves behind with the keeper."""

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
_WITHIN_S = 2


def stat_of(pid: int) -> list[bytes]:
    """Return the fields of /proc/*pid*/stat, from the state on; raise OSError if it has ended."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def is_alive(pid: int) -> bool:
    """Whether process *pid* is alive on this host; a zombie is not."""
    try:
        return stat_of(pid)[0] not in (b"Z", b"X")
    except OSError:
        return False


def adopt_orphans() -> None:
    """Adopt descendants of this process whose parent ends."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_children(*, patience_s: float) -> None:
    """Wait *patience_s* for the children of this process to end, even adopted ones; then kill them.

    Call this only if every child belongs to nsys, as in the keeper.
    """
    kind_until = time.monotonic() + patience_s
    end = kind_until + _WITHIN_S
    while time.monotonic() < end:
        found = list(_children())
        if not found:
            return
        for pid in found if time.monotonic() >= kind_until else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def is_forked() -> bool:
    """Whether this process is a copy of its parent that never called `exec`.

    The kernel gives a program random addresses at `exec`, so no two starts share them.
    """
    try:
        ours, parents = (Path(f"/proc/{pid}/auxv").read_bytes() for pid in ("self", os.getppid()))
    except OSError:
        return False
    return ours == parents


def _children() -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, *_ = stat_of(int(folder.name))
            if int(parent) == os.getpid() and state != b"Z":
                yield int(folder.name)
