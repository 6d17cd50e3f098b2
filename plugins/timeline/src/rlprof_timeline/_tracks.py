"""The processes and threads of a trace: what they are called, and their numbers in the timeline.

Separate because all windows of a target and tool share them, whichever way their events are read.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any

import attrs

from rlprof_traces import encode

_LAST = 1 << 31
"""The place of a track that names none."""
_HEARD = {"name": str, "labels": str, "sort_index": int}
"""What metadata events say of a process or thread; the rest of them is not carried on."""
PROCESSES = 1024
"""Numbers that are kept for the processes of one group; what is beyond shares the last."""
_MOST = 1 << 16
"""Threads of a group, and processes and threads of which something is said."""
_REST = "others"
_LONGEST = 300
"""Characters of a name."""
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
    is_full: bool = False
    """Whether some share a track that should not."""
    _threads: int = 0
    _rest: Track | None = None
    _said: defaultdict[tuple[int | str, int | str | None], dict[str, Any]] = attrs.field(
        factory=lambda: defaultdict(dict)
    )

    def number(self, pid: int | str) -> int:
        """Give the process *pid* of the trace its number."""
        return self._process(pid).number

    def _process(self, pid: int | str) -> Track:
        track = self.by_pid.get(pid, self._rest)
        if track is None:
            nth = len(self.by_pid)
            track = Track(f"process {pid}" if isinstance(pid, int) else pid, self.first + nth)
            if nth == PROCESSES - 1:
                pid, self.is_full = _REST, True
                self._rest = track = Track(_REST, self.first + nth)
            self.by_pid[pid] = track
        return track

    def thread(self, pid: int | str, tid: int | str) -> int:
        """Give the thread *tid* of a process that has a number its own: where it can, its old one.

        Perfetto orders threads by number, and a number of the system tells a reader something.
        """
        process = self._process(pid)
        if process is self._rest:
            tid = f"{pid} {tid}"
        track = process.threads.get(tid)
        if track is None:
            if self._threads >= _MOST:
                tid, self.is_full = _REST, True
            is_number = isinstance(tid, int) and 0 <= tid < _THREADS
            number = int(tid) if is_number else _THREADS + len(process.threads)
            track = process.threads.setdefault(tid, Track(str(tid), number, sort_index=number))
            self._threads += 1
        return track.number

    def hear(self, event: dict[str, Any]) -> None:
        """Keep what a metadata event says of a process or a thread."""
        kind, _, what = str(event.get("name")).partition("_")
        args = event.get("args")
        if kind not in ("process", "thread") or what not in _HEARD or not isinstance(args, dict):
            return
        value = args.get(what)
        if isinstance(value, _HEARD[what]) and not isinstance(value, bool):
            pid = called(event.get("pid"))
            who = pid, called(event.get("tid")) if kind == "thread" else None
            if who in self._said or len(self._said) < _MOST:
                self._said[who][what] = value[:_LONGEST] if isinstance(value, str) else value

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


def called(value: object) -> int | str:
    """Return what a trace calls a process or a thread; 7 and "7" are one for every viewer."""
    if isinstance(value, int):
        return int(value)
    text = value if isinstance(value, str) else "" if value is None else encode(value).decode()
    if text.isdecimal() and text.isascii() and len(text) < 10:
        return int(text)
    return short(text)


def short(text: str) -> str:
    """Cut *text*, so that what is different stays so."""
    if len(text) <= _LONGEST:
        return text
    rest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{text[: _LONGEST - 20]}...{rest}"
