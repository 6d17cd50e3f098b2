"""The agent of nsys is watched: once it has died, whatever the program starts would die, too.

nsys leaves variables by which it gets into each child, and a child that finds no agent ends with 1
before it begins (2023.4). They are taken away then, so that the program goes on as it would alone.
Processes of rlprof's own are started without them at any time: nobody wants these in a report.
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
"""Processes that watch: this one, and those it was forked from."""


def watch_agent() -> None:
    """Wait on a thread for the end of the agent that this process was born with; once."""
    if os.getpid() in _watched or _AGENT not in os.environ:
        return
    with suppress(OSError, ValueError, AttributeError):
        try:
            agent = os.pidfd_open(int(os.environ[_AGENT]))
        except ProcessLookupError:  # it has died already
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
    """Take away from *environ* what brings nsys into children, and nothing of the user's."""
    for name in [name for name in environ if _INTO_CHILDREN.match(name)]:
        del environ[name]
    for name in ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "LD_PRELOAD"):
        libraries = re.split(r"[:\s]+", environ.get(name, ""))
        kept = [library for library in libraries if library and not _LIBRARY.search(library)]
        if len(kept) == len([library for library in libraries if library]):
            continue
        if kept:
            environ[name] = ":".join(kept)
        else:
            del environ[name]
