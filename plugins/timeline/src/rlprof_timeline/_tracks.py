"""The processes and threads of a trace: their names, and their numbers in the timeline.

All threads of a target become threads of one process; a file of unknown owner keeps its processes.
Separate because all windows of a target and tool share them, by either method of reading events.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_traces import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAST = 1 << 31
"""The place of a track without one."""
_HEARD = {"name": str, "labels": str, "sort_index": int}
"""The metadata events of a process or thread that are kept; the others are dropped."""
PROCESSES = 1 << 14
"""Numbers reserved for the processes of one group."""
_STREAMS = 1000
"""Numbers reserved for the streams of devices, which stand above the other threads."""
_DEVICE = re.compile(r"\b(?:GPU|NPU|XPU|Ascend Hardware)\b")
_LONGEST = 300
"""Most characters of a name."""

Id = int | str
"""The id of a process or a thread in a trace."""


@attrs.define(eq=False)
class Tracks:
    """The tracks of a group of traces, numbered so that viewers show them in order."""

    title: str
    """The prefix of each name."""
    first: int
    """The number of the first thread."""
    pid: int
    """The number of the process; of the first one if the group has several."""
    is_one: bool = True
    """Whether all threads are of one process."""
    _at: dict[tuple[Id, Id], tuple[int, int]] = attrs.field(factory=dict)
    """Those with events: their numbers."""
    _pids: dict[Id, int] = attrs.field(factory=dict)
    _tids: dict[tuple[Id, Id], int] = attrs.field(factory=dict)
    _waiting: set[tuple[Id, Id]] = attrs.field(factory=set)
    """Threads that were heard of and have no number yet."""
    _counters: dict[str, Id] = attrs.field(factory=dict)
    _metadata: defaultdict[tuple[Id, Id | None], dict[str, Any]] = attrs.field(
        factory=lambda: defaultdict(dict)
    )
    _used: Counter[bool] = attrs.field(factory=Counter)
    """How many streams and other threads have a number."""

    def at(self, pid: Id, tid: Id) -> tuple[int, int]:
        """Return the numbers of the process and the thread of an event."""
        found = self._at.get((pid, tid))
        if found is None:
            nth = 0 if self.is_one else min(len(self._pids), PROCESSES - 1)
            process = self._pids.setdefault(pid, self.pid + nth)
            found = self._at[pid, tid] = process, self._thread(pid, tid)
        return found

    def _thread(self, pid: Id, tid: Id) -> int:
        """Number a thread, and before it those heard of that stand above it."""
        self._waiting.add((pid, tid))
        new = [one for one in self._waiting if one not in self._tids]
        for who in sorted(new, key=self._place):
            is_stream = bool(_DEVICE.search(" ".join(self._process(who[0]))))
            is_stream = is_stream and self._used[True] < _STREAMS
            nth = self._used[is_stream] + (0 if is_stream else _STREAMS)
            self._tids[who] = self.first + nth
            self._used[is_stream] += 1
        self._waiting.clear()
        return self._tids[pid, tid]

    def _place(self, who: tuple[Id, Id]) -> tuple[int, int, str]:
        process, thread = (self._metadata.get(key, {}) for key in ((who[0], None), who))
        nth = who[1] if isinstance(who[1], int) else _LAST
        return process.get("sort_index", _LAST), thread.get("sort_index", nth), str(who[1])

    def _process(self, pid: Id) -> tuple[str, str]:
        """Return name and labels of a process."""
        metadata = self._metadata.get((pid, None), {})
        name = f"process {pid}" if isinstance(pid, int) else pid
        return metadata.get("name", name), metadata.get("labels", "")

    def counter(self, pid: Id, name: str) -> str:
        """Return a name for a counter that no other tool's counter has, nor another process'."""
        if not self.is_one:
            return name
        is_first = self._counters.setdefault(name, pid) == pid
        return " · ".join(filter(None, (self.title, name, "" if is_first else str(pid))))

    def hear(self, event: dict[str, Any]) -> None:
        """Keep a metadata event of a process or a thread."""
        kind, _, what = str(event.get("name")).partition("_")
        args = event.get("args")
        if kind not in ("process", "thread") or what not in _HEARD or not isinstance(args, dict):
            return
        value = args.get(what)
        if isinstance(value, _HEARD[what]) and not isinstance(value, bool):
            pid, tid = called(event.get("pid")), called(event.get("tid"))
            who = pid, tid if kind == "thread" else None
            if kind == "thread":
                self._waiting.add((pid, tid))
            self._metadata[who][what] = (
                value[:_LONGEST].strip() if isinstance(value, str) else value
            )

    def names(self) -> Iterator[tuple[str, int, int, str]]:
        """Yield kind, process, thread and name of each track with events, in order."""
        parts = self._parts()
        named = {self.pid} if self.is_one else set()
        for who, (pid, tid) in sorted(self._at.items(), key=lambda one: one[1]):
            part, thread = parts[who[0]], self._metadata.get(who, {}).get("name", "")
            thread = thread or (f"thread {who[1]}" if isinstance(who[1], int) else who[1])
            if pid not in named:
                named.add(pid)
                yield "process", pid, 0, " · ".join(filter(None, (self.title, part)))
            title, whose = (self.title, part) if self.is_one else ("", "")
            words = filter(None, (title, f"{whose} {thread}".strip()))
            yield "thread", pid, tid, " · ".join(words) or "events"

    def _parts(self) -> dict[Id, str]:
        """Name the processes; in one process, by that in which they differ."""
        found = {pid: self._process(pid) for pid, _ in self._at}
        is_alike = self.is_one and len({name for name, _ in found.values()}) == 1
        plain = "CPU" if self.is_one else ""
        return {
            pid: f"{'' if is_alike else name} {'' if labels == plain else labels}".strip()
            for pid, (name, labels) in found.items()
        }


def called(value: object) -> Id:
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
