"""The processes and threads of a trace: their names, and their numbers in the timeline.

Separate because all windows of a target and tool share them, by either method of reading events.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any

import attrs

from rlprof_traces import encode

_LAST = 1 << 31
"""The place of a track without one."""
_HEARD = {"name": str, "labels": str, "sort_index": int}
"""The metadata events of a process or thread that are kept; the others are dropped."""
PROCESSES = 1 << 14
"""Numbers reserved for the processes of one group."""
_LONGEST = 300
"""Most characters of a name."""
_THREADS = 1_000_000_000
"""From here on come the numbers of threads that have a name instead of a number."""


@attrs.define(eq=False)
class Track:
    """A process or a thread."""

    name: str
    number: int
    labels: str = ""
    sort_index: int = _LAST
    threads: dict[int | str, Track] = attrs.field(factory=dict)
    """For a process: its threads with events, by their ids in the trace."""


@attrs.define(eq=False)
class Tracks:
    """The processes of a group of traces, numbered from *first* on."""

    first: int
    by_pid: dict[int | str, Track] = attrs.field(factory=dict)
    """The processes with events, by their ids in the trace."""
    _said: defaultdict[tuple[int | str, int | str | None], dict[str, Any]] = attrs.field(
        factory=lambda: defaultdict(dict)
    )

    def number(self, pid: int | str) -> int:
        """Return the number of the process *pid* of the trace."""
        return self._process(pid).number

    def _process(self, pid: int | str) -> Track:
        track = self.by_pid.get(pid)
        if track is None:
            name = f"process {pid}" if isinstance(pid, int) else pid
            track = self.by_pid[pid] = Track(name, self.first + len(self.by_pid))
        return track

    def thread(self, pid: int | str, tid: int | str) -> int:
        """Give the thread *tid* of a process that has a number its own: where it can, its old one.

        Perfetto orders threads by number, and a number of the system tells a reader something.
        """
        threads = self._process(pid).threads
        track = threads.get(tid)
        if track is None:
            is_number = isinstance(tid, int) and 0 <= tid < _THREADS
            number = int(tid) if is_number else _THREADS + len(threads)
            track = threads[tid] = Track(str(tid), number, sort_index=number)
        return track.number

    def hear(self, event: dict[str, Any]) -> None:
        """Keep a metadata event of a process or a thread."""
        kind, _, what = str(event.get("name")).partition("_")
        args = event.get("args")
        if kind not in ("process", "thread") or what not in _HEARD or not isinstance(args, dict):
            return
        value = args.get(what)
        if isinstance(value, _HEARD[what]) and not isinstance(value, bool):
            pid = called(event.get("pid"))
            who = pid, called(event.get("tid")) if kind == "thread" else None
            self._said[who][what] = value[:_LONGEST] if isinstance(value, str) else value

    def told(self) -> dict[int | str, Track]:
        """Return the tracks with their metadata; a track without events needs no name."""
        for (pid, tid), said in self._said.items():
            track = self.by_pid.get(pid)
            if track is not None and tid is not None:
                track = track.threads.get(tid)
            for what, value in said.items():
                if track is not None:
                    setattr(track, what, value)
        return self.by_pid


def called(value: object) -> int | str:
    """Return the id of a process or a thread in a trace; viewers take 7 and "7" for the same."""
    if isinstance(value, int):
        return int(value)
    text = value if isinstance(value, str) else "" if value is None else encode(value).decode()
    if text.isdecimal() and text.isascii() and len(text) < 10:
        return int(text)
    return short(text)


def short(text: str) -> str:
    """Cut *text*, so that different texts stay different."""
    if len(text) <= _LONGEST:
        return text
    rest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{text[: _LONGEST - 20]}...{rest}"
