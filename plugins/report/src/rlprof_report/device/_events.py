"""The events of one trace as flat arrays: 30 bytes an event, whatever the trace holds.

Each batch of the shared reader is decoded at once, only the members that a figure needs.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import numpy as np

from rlprof_report._slices import decoded
from rlprof_report.device.values import MemoryPeak
from rlprof_traces import TraceText

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

KERNEL, COPY, SYNC = 1, 2, 3
_DEVICE = {
    "kernel": KERNEL, "Kernel": KERNEL, "gpu_memcpy": COPY, "Memcpy": COPY, "gpu_memset": COPY,
    "Memset": COPY, "cuda_sync": SYNC,
}  # fmt: skip
_LAUNCH = {"cuda_runtime", "cuda_driver", "Runtime", "cuda_api", "xpu_runtime", "xpu_driver"}
_HOST = {"cpu_op", "Operator"}
_MEET = ("gloo:", "nccl:", "hccl:")
FARTHEST_NS = 1 << 62
"""No time of a trace is as far from 0."""
_DEVICES = {0: "cpu", 1: "cuda", 12: "xpu", 20: "npu"}


class _Args(msgspec.Struct, gc=False):
    correlation: Any = -1
    group: Any = msgspec.field(default="", name="Process Group Name")
    ranks: Any = msgspec.field(default="", name="Process Group Ranks")
    allocated: Any = msgspec.field(default=None, name="Total Allocated")
    reserved: Any = msgspec.field(default=0, name="Total Reserved")
    device_type: Any = msgspec.field(default=0, name="Device Type")
    device_id: Any = msgspec.field(default=-1, name="Device Id")


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float = 0.0
    dur: float = 0.0
    tid: Any = 0
    args: _Args | None = None


_MANY, _ONE = msgspec.json.Decoder(list[_Event]), msgspec.json.Decoder(_Event)


@attrs.define(eq=False)
class Events:
    """The events of a trace, in its order; all times are nanoseconds on its clock."""

    names: dict[str, int] = attrs.field(factory=dict)
    """Names as numbers, in the order in which they were met."""
    starts: Any = attrs.field(factory=lambda: array("q"))
    ends: Any = attrs.field(factory=lambda: array("q"))
    name: Any = attrs.field(factory=lambda: array("i"))
    kind: Any = attrs.field(factory=lambda: array("b"))
    correlation: Any = attrs.field(factory=lambda: array("q"))
    launched: Any = attrs.field(factory=lambda: array("q"))
    """The correlation of each call that may launch something."""
    launched_at: Any = attrs.field(factory=lambda: array("q"))
    host_names: dict[str, int] = attrs.field(factory=dict)
    host_starts: Any = attrs.field(factory=lambda: array("q"))
    host_ends: Any = attrs.field(factory=lambda: array("q"))
    host_name: Any = attrs.field(factory=lambda: array("i"))
    host_thread: Any = attrs.field(factory=lambda: array("i"))
    memory: dict[str, MemoryPeak] = attrs.field(factory=dict)
    meetings: list[tuple[str, int, int]] = attrs.field(factory=list)
    """Collectives that the host noted: what, from, to."""
    groups: dict[int, str] = attrs.field(factory=dict)
    """Place of a kernel → its process group, if the trace names it."""
    head: Mapping[str, Any] = attrs.field(factory=dict)
    dropped: int = 0
    problems: tuple[str, ...] = ()


def read_events(path: Path, from_ns: int, until_ns: int) -> Events:
    """Read the trace *path*; raise `UnreadableError` if nothing of it can be read.

    *from_ns* and *until_ns* bound the memory events, in nanoseconds of its own clock.
    """
    text = TraceText(path)
    events = Events()
    reader = _Reader(events, from_ns, until_ns)
    for batch in text.batches():
        reader.take(batch)
    events.head = text.head
    events.dropped += text.dropped
    events.problems = tuple(text.problems)
    for field in attrs.fields(Events):
        column = getattr(events, field.name)
        if isinstance(column, array):
            setattr(events, field.name, np.frombuffer(column, column.typecode))
    return events


class _Reader:
    def __init__(self, events: Events, from_ns: int, until_ns: int) -> None:
        self._events, self._from, self._until = events, from_ns, until_ns
        self._threads: dict[Any, int] = {}

    def take(self, batch: bytes) -> None:
        every, odd = decoded(batch, _MANY, _ONE)
        self._events.dropped += odd
        found = iter(every)
        while True:
            try:
                self._sort(found)
            except (ValueError, TypeError, OverflowError):
                self._events.dropped += 1
            else:
                return

    def _sort(self, found: Iterator[_Event]) -> None:
        """Sort each event into its column; raise for an invalid one, which is then dropped."""
        to, device, launch, host = self._events, _DEVICE, _LAUNCH, _HOST
        earliest, latest = -FARTHEST_NS, FARTHEST_NS
        known, known_host, threads = to.names, to.host_names, self._threads
        for event in found:
            cat = event.cat
            if event.ph != "X":
                if event.name == "[memory]" and event.args is not None:
                    self._remember(event.args, _nanoseconds(event.ts))
            elif cat in host:
                begin = _nanoseconds(event.ts)
                end = begin + _nanoseconds(event.dur)
                if not earliest < begin <= end < latest:
                    raise ValueError("no time")
                name = event.name
                number = known_host.setdefault(name, len(known_host))
                thread = threads.setdefault(event.tid, len(threads))
                to.host_starts.append(begin)
                to.host_ends.append(end)
                to.host_name.append(number)
                to.host_thread.append(thread)
            elif cat in device:
                begin = _nanoseconds(event.ts)
                end = begin + _nanoseconds(event.dur)
                if not earliest < begin <= end < latest:
                    raise ValueError("no time")
                args = event.args
                correlation = -1
                if args is not None:
                    correlation = _number(args.correlation)
                    if args.group or args.ranks:
                        to.groups[len(to.starts)] = sys.intern(f"{args.group} {args.ranks}")
                name = event.name
                number = known.setdefault(name, len(known))
                to.starts.append(begin)
                to.ends.append(end)
                to.name.append(number)
                to.kind.append(device[cat])
                to.correlation.append(correlation)
            elif cat in launch:
                if event.args is not None:
                    correlation = _number(event.args.correlation)
                    if correlation >= 0:
                        begin = _nanoseconds(event.ts)
                        if not earliest < begin < latest:
                            raise ValueError("no time")
                        to.launched_at.append(begin)
                        to.launched.append(correlation)
            elif cat == "user_annotation" and event.name.startswith(_MEET):
                begin = _nanoseconds(event.ts)
                to.meetings.append((event.name, begin, begin + _nanoseconds(event.dur)))

    def _remember(self, args: _Args, at: int) -> None:
        allocated, reserved = _number(args.allocated), _number(args.reserved)
        if not self._from <= at <= self._until:
            return
        kind = _DEVICES.get(args.device_type, f"device type {args.device_type}")
        device = f"{kind}:{args.device_id}" if _number(args.device_id) >= 0 else kind
        known = self._events.memory.get(device, MemoryPeak(device, 0, 0))
        self._events.memory[device] = MemoryPeak(
            device, max(allocated, known.allocated_bytes), max(reserved, known.reserved_bytes)
        )


def _number(value: Any) -> int:
    """Return *value* if it is a number that fits, else -1."""
    return value if type(value) is int and -1 <= value < FARTHEST_NS else -1


def _nanoseconds(us: float) -> int:
    whole = int(us)  # apart, for times of the epoch in ns are too large for a double
    return whole * 1000 + round((us - whole) * 1000)
