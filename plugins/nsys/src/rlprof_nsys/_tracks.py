"""Assigns events to tracks: one for each kind of event on a thread, and each stream of a device.

Events on one track of a chrome-trace must nest. Ranges of two NVTX domains need not nest, nor do
ranges and calls.
"""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

from rlprof_nsys._sqlite import PID_SHIFT, THREAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_nsys._sqlite import Tables

_FIRST_DEVICE = 1_000_000_000
"""The first number of a device: above all pids."""
_NO_STREAM = (None, 0xFFFFFFFF, -1)


class Tracks:
    """Numbers tracks as they appear; `names` yields their names."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._numbers = count(1)
        self._devices = count(_FIRST_DEVICE)
        self._processes: dict[Any, int] = {}
        self._tracks: dict[Any, tuple[int, int]] = {}
        self._unsaid: list[str] = []

    def names(self) -> Iterator[str]:
        """Yield the names of the tracks that are new since the last call."""
        if self._unsaid:
            unsaid, self._unsaid = self._unsaid, []
            yield from unsaid

    def of_thread(self, global_tid: int | None, kind: str) -> tuple[int, int]:
        """Return process and track for events of *kind* on a thread."""
        key = global_tid, kind
        if key not in self._tracks:
            whole = global_tid or 0
            pid, tid = whole >> PID_SHIFT & THREAD, whole & THREAD
            if pid not in self._processes:
                self._processes[pid] = pid
                self._say("process", pid, 0, self._tables.process_name(pid) or f"process {pid}")
            name = self._tables.thread_name(whole) if tid else ""
            self._add(key, pid, f"{name or 'thread'} {tid} · {kind}" if tid else kind)
        return self._tracks[key]

    def of_stream(
        self, global_pid: int | None, device: int, context: int, stream: int | None, kind: str
    ) -> tuple[int, int]:
        """Return process and track for the events of a process on a stream of a device."""
        key = global_pid, device, context, stream, kind
        if key not in self._tracks:
            whose = global_pid, device
            if whose not in self._processes:
                self._processes[whose] = next(self._devices)
                pid = (global_pid or 0) >> PID_SHIFT & THREAD
                self._say("process", self._processes[whose], 0, f"GPU {device} of process {pid}")
            name = "all streams" if stream in _NO_STREAM else f"stream {stream}"
            known = f"{name} of context {context}" if context else name
            self._add(key, self._processes[whose], f"{known} · {kind}" if kind else known)
        return self._tracks[key]

    def _add(self, key: Any, pid: int, name: str) -> None:
        self._tracks[key] = pid, next(self._numbers)
        self._say("thread", pid, self._tracks[key][1], name)

    def _say(self, what: str, pid: int, tid: int, name: str) -> None:
        event = {"ph": "M", "pid": pid, "tid": tid, "name": f"{what}_name", "args": {"name": name}}
        self._unsaid.append(json.dumps(event))


def micros(nanoseconds: int) -> str:
    """Write nanoseconds as microseconds with three decimals, so that none is lost."""
    if nanoseconds < 0:
        return f"-{micros(-nanoseconds)}"
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"
