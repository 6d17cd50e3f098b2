"""Watches the agent of nsys: once it has died, every process that the program starts would die too.

nsys sets variables to get into each child, and a child that finds no agent exits with 1 before it
starts (2023.4). So they are removed when the agent dies, and the program continues as without nsys.
rlprof always starts its helper processes without these variables, to keep them out of reports.
"""

from __future__ import annotations

import os
import re
import select
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_INTO_CHILDREN = re.compile(r"QUADD_|NSYS_(?!RLPROF)")
_LIBRARY = re.compile(r"ToolsInjection|InterceptorProxy|InterceptorInjection|TreeLauncher")
_AGENT = "QUADD_AGENT_PID"
_watched: set[int] = set()
"""Pids that watch: this process, and processes that it was forked from."""


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
