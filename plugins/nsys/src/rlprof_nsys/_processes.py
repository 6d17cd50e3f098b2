"""Other processes: whether one is alive, those that nsys leaves behind, and the agent of nsys.

Once the agent has died, every process that the program starts would die too. nsys sets variables to
get into each child, and a child that finds no agent exits with 1 before it starts (2023.4). So they
are removed when the agent dies, and the program continues as without nsys. rlprof always starts its
helper processes without these variables, to keep them out of reports.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

_PR_SET_CHILD_SUBREAPER = 36
_WITHIN_S = 2
_INTO_CHILDREN = re.compile(r"QUADD_|NSYS_(?!RLPROF)")
_LIBRARY = re.compile(r"ToolsInjection|InterceptorProxy|InterceptorInjection|TreeLauncher")
_AGENT = "QUADD_AGENT_PID"
_watched: set[int] = set()
"""Pids that watch: this process, and processes that it was forked from."""


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


def watch_agent() -> None:
    """Start a thread, once, that waits for the end of this process's agent."""
    if os.getpid() in _watched or _AGENT not in os.environ:
        return
    with suppress(OSError, ValueError, AttributeError):
        try:
            agent = os.pidfd_open(int(os.environ[_AGENT]))
        except ProcessLookupError:  # it is already dead
            leave_children_alone(os.environ)
            return
        _watched.add(os.getpid())
        threading.Thread(target=_wait, args=(agent,), name="rlprof-nsys-agent", daemon=True).start()


def _wait(agent: int) -> None:
    ended = select.poll()
    ended.register(agent, select.POLLIN)
    ended.poll()
    os.close(agent)
    leave_children_alone(os.environ)


def leave_children_alone(environ: MutableMapping[str, str]) -> None:
    """Remove from *environ* all that brings nsys into children, and nothing of the user's."""
    for name in [name for name in environ if _INTO_CHILDREN.match(name)]:
        del environ[name]
    for name in ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "LD_PRELOAD"):
        libraries = re.split(r"[:\s]+", environ.get(name, ""))
        kept = [library for library in libraries if not _LIBRARY.search(library)]
        if kept != libraries:
            environ[name] = ":".join(kept)
        if not environ.get(name, "unset"):
            del environ[name]
