"""A window of events of any layout, moved to its place on the timeline.

Each event is decoded as far as it must change, and encoded again. Separate from `_inplace.py`,
which is faster where the layout is the one that Kineto writes today.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from rlprof_timeline._lines import PLAIN, decode, encode, nanoseconds, timed
from rlprof_timeline._place import FIRST_WORDS
from rlprof_timeline._tracks import place

if TYPE_CHECKING:
    from rlprof_timeline._place import Place

_NONE = msgspec.UNSET
_ENCODE = msgspec.json.Encoder().encode
_READ_US = 9 * 10**12
"""Below it a double holds a time in microseconds to the nanosecond."""
_WRITTEN_US = 4 * 10**12
"""Below it the shortest text of such a double has these three digits, and no others."""


class _Event(msgspec.Struct, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One event: read are the members that must change, the others stay text."""

    ts: int | float
    ph: str
    pid: int | str | None = None
    tid: int | str | None = None
    dur: int | float | msgspec.UnsetType = _NONE
    name: str | msgspec.UnsetType = _NONE
    cat: str | msgspec.UnsetType = _NONE
    id: int | str | msgspec.UnsetType = _NONE
    bind_id: int | str | msgspec.UnsetType = _NONE
    s: str | msgspec.UnsetType = _NONE
    bp: str | msgspec.UnsetType = _NONE
    cname: str | msgspec.UnsetType = _NONE
    args: msgspec.Raw | msgspec.UnsetType = _NONE
    tts: msgspec.Raw | msgspec.UnsetType = _NONE
    tdur: msgspec.Raw | msgspec.UnsetType = _NONE
    flow_in: msgspec.Raw | msgspec.UnsetType = _NONE
    flow_out: msgspec.Raw | msgspec.UnsetType = _NONE


_DECODE = msgspec.json.Decoder(list[_Event]).decode


def moved(window: bytes, to: Place) -> bytes:
    """Return the events of *window*, with commas between them, as they stand on the timeline."""
    try:
        events = _DECODE(b"[" + window + b"]")
    except (msgspec.DecodeError, RecursionError):  # members nobody knows, times that are text
        return _each(window, to)
    if b'"M"' in window:
        for event in events:
            if event.ph == "M":
                to.tracks.hear(_metadata(event))
        events = [event for event in events if event.ph != "M"]
    if not events:
        return b""
    times = _times(events, to)
    if times is None:
        return _each(window, to)
    if b"\\" in window:
        for event in events:
            _without_escapes(event)
    for event, at in zip(events, times, strict=True):
        name = event.name
        if name is not _NONE and name.startswith(FIRST_WORDS) and event.dur is not _NONE:
            to.met(name, round(at * 1000) + round(event.dur * 1000))
    to.events += len(events)
    places: dict[tuple[Any, Any], tuple[int, int]] = {}
    for event, at in zip(events, times, strict=True):
        event.ts = at
        where = event.pid, event.tid
        found = places.get(where)
        if found is None:
            pid, tid = place(where[0]), place(where[1])
            found = places[where] = to.tracks.number(pid), to.tracks.thread(pid, tid)
        event.pid, event.tid = found
        if event.id is not _NONE:
            event.id = to.id(event.id)
        if event.bind_id is not _NONE:
            event.bind_id = to.id(event.bind_id)
        if event.dur is _NONE and event.ph == "X":
            event.dur = 0  # Perfetto drops a slice without one
    return _ENCODE(events)[1:-1]


def _times(events: list[_Event], to: Place) -> list[float] | None:
    """Return the new times, of those events alone that are to be shown.

    None: a double does not hold them.
    """
    import numpy as np

    old = [event.ts for event in events]
    us = np.array(old, dtype=np.float64)
    low, high = us.min(), us.max()
    is_small = -_READ_US < low <= high < _READ_US
    if not is_small and any(type(ts) is float or abs(ts) > 9 * 10**15 for ts in old):
        return None
    ns = np.rint(us * 1000).astype(np.int64) if is_small else us.astype(np.int64) * 1000
    ns += to.shift_ns
    if not -_WRITTEN_US * 1000 < ns.min() <= ns.max() < _WRITTEN_US * 1000:
        return None
    if to.is_cut:
        kept = [
            to.is_inside(at, 0 if event.dur is _NONE else round(event.dur * 1000))
            for event, at in zip(events, ns.tolist(), strict=True)
        ]
        events[:] = [event for event, is_kept in zip(events, kept, strict=True) if is_kept]
        ns = ns[kept]
    if len(ns):
        to.saw(int(ns.min()))
    times: list[float] = (ns / 1000).tolist()
    return times


def _metadata(event: _Event) -> dict[str, Any]:
    args = {} if event.args is _NONE else decode(bytes(event.args))
    return {"name": event.name, "pid": event.pid, "tid": event.tid, "args": args}


def _without_escapes(event: _Event) -> None:
    """Rid an event of what Perfetto cannot read; see `_lines.py`."""
    for key in ("name", "cat", "cname"):
        text = getattr(event, key)
        if text is not _NONE:
            setattr(event, key, text.translate(PLAIN))
    if event.args is not _NONE and b"\\" in (args := bytes(event.args)):
        event.args = msgspec.Raw(encode(decode(args)))


def _each(window: bytes, to: Place) -> bytes:
    """Move events one by one, whatever they are."""
    events = decode(b"[" + window + b"]")
    return b",\n".join(line for event in events for line in _one(event, to))


def _one(event: Any, to: Place) -> list[bytes]:
    """Move one event, whatever it is."""
    if isinstance(event, dict) and event.get("ph") == "M":
        to.tracks.hear(event)
        return []
    at = _time(event.get("ts")) if isinstance(event, dict) and "ph" in event else None
    if at is None:
        to.untimed += 1
        return []
    at += to.shift_ns
    dur = _time(event.pop("dur", None))
    if not to.is_inside(at, dur or 0):
        return []
    if dur is None and event["ph"] == "X":
        dur = 0  # Perfetto drops a slice without one
    to.saw(at)
    to.events += 1
    if dur is not None:
        to.met(str(event.get("name")), at + dur)
    pid, tid = place(event.get("pid")), place(event.get("tid"))
    event |= {"pid": to.tracks.number(pid), "tid": to.tracks.thread(pid, tid)}
    for key in ("id", "bind_id"):
        if key in event:
            event[key] = to.id(event[key])
    if isinstance(event.get("id2"), dict):
        event["id2"] = {scope: to.id(own) for scope, own in event["id2"].items()}
    del event["ts"]
    return [timed(event, at, dur)]


def _time(us: object) -> int | None:
    if isinstance(us, str):  # torch_npu writes them as text
        try:
            us = Decimal(us)
        except ArithmeticError:
            return None
    return nanoseconds(us)
