"""The processes and threads of a trace: what they are called, and their numbers in the timeline.

Separate because all windows of a target and tool share them, whichever way their events are read.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import attrs

_LAST = 1 << 31
"""The place of a track that names none."""
_HEARD = {"name": str, "labels": str, "sort_index": int}
"""What metadata events say of a process or thread; the rest of them is not carried on."""
PROCESSES = 64
"""Numbers that are kept for the processes of one group; what is beyond shares the last."""
_THREADS = 1_000_000_000
"""From here on are the numbers of threads that have a name instead of one."""


@attrs.define(eq=False)
class Track:
    """A process or a thread."""

    name: str
    number: int
    labels: str = ""
    sort_index: int = _LAST
    threads: dict[int | str, Track] = attrs.field(factory=dict)
    """Of a process: those with events, by what the trace calls them."""


@attrs.define(eq=False)
class Tracks:
    """The processes of a group of traces, numbered from *first* on."""

    first: int
    by_pid: dict[int | str, Track] = attrs.field(factory=dict)
    """Those with events, by what the trace calls them."""
    _said: defaultdict[tuple[int | str, int | str | None], dict[str, Any]] = attrs.field(
        factory=lambda: defaultdict(dict)
    )

    def number(self, pid: int | str) -> int:
        """Give the process *pid* of the trace its number."""
        track = self.by_pid.get(pid)
        if track is None:
            nth = min(len(self.by_pid), PROCESSES - 1)
            track = self.by_pid[pid] = Track(str(pid), self.first + nth)
        return track.number

    def thread(self, pid: int | str, tid: int | str) -> int:
        """Give the thread *tid* of a process that has a number its own: where it can, its old one.

        Perfetto orders threads by number, and a number of the system tells a reader something.
        """
        threads = self.by_pid[pid].threads
        track = threads.get(tid)
        if track is None:
            is_number = isinstance(tid, int) and 0 <= tid < _THREADS
            number = int(tid) if is_number else _THREADS + len(threads)
            track = threads[tid] = Track(str(tid), number, sort_index=number)
        return track.number

    def hear(self, event: dict[str, Any]) -> None:
        """Keep what a metadata event says of a process or a thread."""
        kind, _, what = str(event.get("name")).partition("_")
        args = event.get("args")
        if kind not in ("process", "thread") or what not in _HEARD or not isinstance(args, dict):
            return
        value = args.get(what)
        if isinstance(value, _HEARD[what]) and not isinstance(value, bool):
            pid = place(event.get("pid"))
            self._said[pid, place(event.get("tid")) if kind == "thread" else None][what] = value

    def told(self) -> dict[int | str, Track]:
        """Return the tracks with what was said of them: without an event, nobody needs its name."""
        for (pid, tid), said in self._said.items():
            track = self.by_pid.get(pid)
            if track is not None and tid is not None:
                track = track.threads.get(tid)
            for what, value in said.items():
                if track is not None:
                    setattr(track, what, value)
        return self.by_pid


def place(value: object) -> int | str:
    """Name a process or a thread; 7 and "7" are one number for every viewer."""
    if isinstance(value, int):
        return int(value)
    text = "" if value is None else str(value)
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else text
