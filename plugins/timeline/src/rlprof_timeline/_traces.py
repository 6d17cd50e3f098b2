"""A recorded trace: read once for its clock and its tracks, and once more for its events.

Separate because only this file knows the chrome-trace format as tools write it. Of the clock it
knows what the trace's `rlprof` object says, nothing else.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import open_regular
from rlprof_timeline._lines import nanoseconds, timed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlprof import Artifact
    from rlprof.rundir import CaptureResult

_NO_TIME_NS = 10**19
"""From here on, the year 2286, no clock is meant."""
_LAST = 1 << 31
"""The place of a track that names none."""
_HEARD = {"name": str, "labels": str, "sort_index": int}
"""What metadata events say of a process or thread; the rest of them is not carried on."""


class UnreadableTraceError(Exception):
    """A trace that must be left out, and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@attrs.define(eq=False)
class Track:
    """A process of a trace, or a thread: what it is called, where it stands, its new number."""

    name: str
    labels: str = ""
    sort_index: int = _LAST
    number: int = 0
    threads: dict[str, Track] = attrs.field(factory=dict)
    """Of a process: by their numbers or names in the trace."""


@attrs.define(eq=False)
class Trace:
    """One trace artifact, and what reading it has told."""

    file: Path
    artifact: Artifact
    capture: CaptureResult
    tracks: dict[str, Track]
    """By process number or name in the trace; shared by all windows of a target and tool."""
    epoch_ns: int = 0
    error_ns: int | None = None
    clock: str = ""
    events: int = 0
    untimed: int = 0
    """Entries that are no events, or have no time: they can stand nowhere."""
    earliest_ns: int | None = None

    def survey(self) -> None:
        """Read the clock, the extent and the tracks."""
        header, events = self._read()
        if type(header.get("epoch_ns")) is not int or abs(header["epoch_ns"]) >= _NO_TIME_NS:
            raise self._unreadable("its rlprof object has no epoch_ns")
        self.epoch_ns = header["epoch_ns"] + self.capture.clock_shift_ns
        self.error_ns = header["error_ns"] if type(header.get("error_ns")) is int else None
        self.clock = str(header.get("clock", ""))
        named = []
        for event in events:
            at = _time(event)
            if at is not None:
                self.events += 1
                at += self.epoch_ns
                self.earliest_ns = at if self.earliest_ns is None else min(at, self.earliest_ns)
                pid, tid = _where(event)
                if pid not in self.tracks:
                    self.tracks[pid] = Track(pid)
                if tid not in self.tracks[pid].threads:
                    is_number = tid.isdecimal() and len(tid) < 10
                    place = int(tid) if is_number else _LAST
                    self.tracks[pid].threads[tid] = Track(tid, sort_index=place)
            elif isinstance(event, dict) and event.get("ph") == "M":
                named.append(event)
            else:
                self.untimed += 1
        for event in named:
            self._hear(event)

    def lines(self, ids: Iterator[int], zero_ns: int) -> Iterator[bytes]:
        """Read the events again, each on its new track, at its new time, with ids of its own."""
        new_ids: defaultdict[str, int] = defaultdict(ids.__next__)
        left = self.events
        for event in self._read()[1]:
            at = _time(event)
            if at is None:
                continue
            pid, tid = _where(event)
            try:
                process = self.tracks[pid]
                event |= {"pid": process.number, "tid": process.threads[tid].number}
            except KeyError:
                left = -1
                break
            left -= 1
            for key in ("id", "bind_id"):
                if key in event:
                    event[key] = new_ids[str(event[key])]
            if isinstance(event.get("id2"), dict):
                event["id2"] = {scope: new_ids[str(own)] for scope, own in event["id2"].items()}
            del event["ts"]
            dur = nanoseconds(event.pop("dur", None))
            if dur is None and event["ph"] == "X":
                dur = 0  # Perfetto drops a slice without one
            yield timed(event, self.epoch_ns + at - zero_ns, dur)
        if left:
            raise self._unreadable("has changed while it was read")

    def _hear(self, event: dict[str, Any]) -> None:
        kind, _, what = str(event.get("name")).partition("_")
        pid, tid = _where(event)
        track = self.tracks.get(pid)  # without an event on it, nobody needs its name
        if track is not None and kind == "thread":
            track = track.threads.get(tid)
        args = event.get("args")
        if track is None or kind not in ("process", "thread") or not isinstance(args, dict):
            return
        if what in _HEARD and isinstance(args.get(what), _HEARD[what]):
            setattr(track, what, args[what])

    def _read(self) -> tuple[dict[str, Any], list[Any]]:
        try:
            with open_regular(self.file) as file, gzip.open(file) as stream:
                trace = json.load(stream, parse_float=Decimal, parse_constant=str)
        except FileNotFoundError:
            raise self._unreadable("is not there") from None
        except EOFError:
            raise self._unreadable("is cut short") from None
        except (OSError, zlib.error) as exc:
            why = getattr(exc, "strerror", None) or exc
            raise self._unreadable(f"cannot be read: {why}") from exc
        except (ValueError, ArithmeticError, RecursionError) as exc:  # also of a Decimal
            raise self._unreadable(f"is no JSON: {exc}") from exc
        except MemoryError:
            raise self._unreadable("is larger than the memory of this machine") from None
        if not isinstance(trace, dict) or not isinstance(trace.get("rlprof"), dict):
            raise self._unreadable("has no rlprof object, so its clock is unknown")
        if not isinstance(trace.get("traceEvents"), list):
            raise self._unreadable("has no traceEvents")
        return trace["rlprof"], trace["traceEvents"]

    def _unreadable(self, reason: str) -> UnreadableTraceError:
        return UnreadableTraceError(self.artifact.path, reason)


def _time(event: Any) -> int | None:
    if not isinstance(event, dict) or event.get("ph", "M") == "M":
        return None
    return nanoseconds(event.get("ts"))


def _where(event: dict[str, Any]) -> tuple[str, str]:
    # 7 and "7" are one number for every viewer: Chrome's, too, keeps them as keys of an object.
    return str(event.get("pid", "")), str(event.get("tid", ""))
