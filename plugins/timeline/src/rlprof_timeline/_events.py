"""A batch of events of any layout, moved to its place on the timeline.

Each event is decoded as far as it must change, and encoded again. Separate from `_inplace.py`,
which is faster but knows only today's layout of Kineto.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from rlprof_timeline._clock import LAST_NS
from rlprof_timeline._place import FIRST_WORDS, is_bookkeeping
from rlprof_timeline._tracks import called, short
from rlprof_traces import encode, nanoseconds, timed

if TYPE_CHECKING:
    from rlprof_timeline._place import Place

_NONE = msgspec.UNSET
_ENCODE = msgspec.json.Encoder().encode
_READ_US = 9_000_000_000_000
"""Below it a double holds a time in microseconds to the nanosecond."""
_WRITTEN_NS = 4_000_000_000_000_000
"""Below it the shortest text of such a double has these three digits, and no others."""
_LATEST_US = 4_000_000_000_000_000
"""Times up to this, in 2096, can be moved in 64 bits."""
_LONGEST_NS = 4_000_000_000_000_000_000
_READ = 1 << 16
"""Bytes of a member that is still decoded."""

_Us = (
    Annotated[int, msgspec.Meta(ge=-_READ_US, le=_READ_US)]
    | Annotated[float, msgspec.Meta(ge=-float(_READ_US), le=float(_READ_US))]
)
"""A double holds times up to this to the nanosecond."""


class _Event(msgspec.Struct, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One event: members that must change are decoded, the others stay text."""

    ts: int | float
    ph: Literal["X", "B", "E", "i", "I", "s", "t", "f", "C", "b", "n", "e", "M", "P", "N", "O", "D"]
    pid: int | str | None = None
    tid: int | str | None = None
    dur: _Us | msgspec.UnsetType = _NONE
    name: str | msgspec.UnsetType = _NONE
    cat: str | msgspec.UnsetType = _NONE
    id: int | str | msgspec.UnsetType = _NONE
    s: Literal["g", "p", "t"] | msgspec.UnsetType = _NONE
    bp: Literal["e"] | msgspec.UnsetType = _NONE
    args: msgspec.Raw | msgspec.UnsetType = _NONE


_DECODE = msgspec.json.Decoder(list[_Event]).decode
_RAW = msgspec.json.Decoder(list[msgspec.Raw]).decode
_VALUE = msgspec.json.Decoder(float_hook=Decimal).decode
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def moved(batch: bytes, to: Place) -> bytes:
    """Return the events of *batch* for the timeline, with commas between them."""
    try:
        events = _DECODE(b"[" + batch + b"]")
    except (msgspec.DecodeError, RecursionError):  # unknown members, times as text
        return _each(batch, to)
    if b'"M"' in batch:
        for event in events:
            if event.ph == "M":
                args = None if event.args is _NONE else _value(event.args)
                known = {"name": event.name, "pid": event.pid, "tid": event.tid, "args": args}
                to.tracks.hear(known)
    events = [one for one in events if one.ph != "M" and not is_bookkeeping(one.pid, one.name)]
    if not events:
        return b""
    if any(event.args is not _NONE and bytes(event.args)[:1] != b"{" for event in events):
        return _each(batch, to)
    times = _times(events, to)
    if times is None:
        return _each(batch, to)
    for event, at in zip(events, times, strict=True):
        name = event.name
        if name is not _NONE and name.startswith(FIRST_WORDS) and event.dur is not _NONE:
            dur_ns = round(event.dur * 1000)
            args = b"" if event.args is _NONE else bytes(event.args)
            to.met(name, round(at * 1000) + dur_ns, dur_ns, args)
    to.events += len(events)
    places: dict[tuple[Any, Any], tuple[int, int]] = {}
    for event, at in zip(events, times, strict=True):
        event.ts = at
        where = event.pid, event.tid
        found = places.get(where)
        if found is None:
            found = places[where] = to.tracks.at(called(where[0]), called(where[1]))
        event.pid, event.tid = found
        if event.ph == "C" and event.name is not _NONE:
            event.name = to.tracks.counter(called(where[0]), event.name)
        if event.s is not _NONE:
            event.s = "t"  # others have a row without a name, which all processes share
        if event.id is not _NONE:
            event.id = to.id(event.id)
        if event.dur is _NONE and event.ph == "X":
            event.dur = 0  # Perfetto drops a slice without one
    return _ENCODE(events)[1:-1]


def _times(events: list[_Event], to: Place) -> list[float] | None:
    """Return the new times of the events that are shown.

    None: a double cannot hold them.
    """
    import numpy as np

    old = [event.ts for event in events]
    low, high = min(old), max(old)
    is_small = -_READ_US < low <= high < _READ_US
    if not is_small and any(type(ts) is float or abs(ts) > _LATEST_US for ts in old):
        return None
    if abs(to.shift_ns) > LAST_NS:
        return None
    us = np.array(old, dtype=np.float64)
    ns = np.rint(us * 1000).astype(np.int64) if is_small else us.astype(np.int64) * 1000
    ns += to.shift_ns
    low, high = int(ns.min()), int(ns.max())
    if not -_WRITTEN_NS < low <= high < _WRITTEN_NS:
        return None
    if not to.is_meant(low) or not to.is_meant(high):
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


def _each(batch: bytes, to: Place) -> bytes:
    """Move events of any kind one by one."""
    return b",\n".join(line for event in _RAW(b"[" + batch + b"]") for line in _one(event, to))


def _one(raw: msgspec.Raw, to: Place) -> list[bytes]:
    """Move one event of any kind; members that need not change stay text."""
    try:
        event = _MEMBERS(raw)
    except (msgspec.DecodeError, RecursionError):
        event = {}
    phase = _value(event.pop("ph", None))
    if phase == "M":
        to.tracks.hear({key: _value(event.get(key)) for key in ("name", "pid", "tid", "args")})
        return []
    at = _time(_value(event.pop("ts", None)))
    at = None if at is None else at + to.shift_ns
    if not isinstance(phase, str) or len(phase) != 1 or at is None or not to.is_meant(at):
        to.untimed += 1
        return []
    dur = _time(_value(event.pop("dur", None)))
    if dur is not None and abs(dur) > _LONGEST_NS:
        dur = None
    if not to.is_inside(at, dur or 0):
        return []
    if dur is None and phase == "X":
        dur = 0  # Perfetto drops a slice without one
    name = _value(event.get("name"))
    pid, tid = (called(_value(event.pop(key, None))) for key in ("pid", "tid"))
    if is_bookkeeping(pid, name):
        return []
    to.saw(at)
    to.events += 1
    if dur is not None and isinstance(name, str):
        to.met(name, at + dur, dur, bytes(event.get("args", b"")))
    ours = dict(zip(("pid", "tid"), to.tracks.at(pid, tid), strict=True), ph=phase)
    if phase == "C" and isinstance(name, str):
        event["name"] = msgspec.Raw(encode(to.tracks.counter(pid, name)))
    if "s" in event:
        event["s"] = msgspec.Raw(b'"t"')  # see `moved`
    ours |= {key: to.id(_value(event.pop(key))) for key in ("id", "bind_id") if key in event}
    scopes = _value(event.pop("id2", None))
    if isinstance(scopes, dict):
        known = ("local", "global")
        ours["id2"] = {scope: to.id(scopes[scope]) for scope in known if scope in scopes}
    for key in event.keys() & ("tts", "tdur"):
        if bytes(event[key])[:1] not in b"-0123456789":
            del event[key]  # Perfetto would refuse the file for it
    members = [_key(key) + bytes(own) for key, own in event.items()]
    return [b",".join((timed(ours, at, dur)[:-1], *members)) + b"}"]


def _value(raw: msgspec.Raw | None) -> Any:
    """Read a member; one that is too large or too deep becomes a short text."""
    if raw is None:
        return None
    text = bytes(raw)
    try:
        return _VALUE(text) if len(text) <= _READ else short(text.decode())
    except (msgspec.DecodeError, ArithmeticError, RecursionError):
        return short(text.decode())


@lru_cache(1 << 10)
def _key(name: str) -> bytes:
    return encode(name) + b":"


def _time(us: object) -> int | None:
    if isinstance(us, str):  # torch_npu writes them as text
        try:
            us = Decimal(us)
        except ArithmeticError:
            return None
    return nanoseconds(us)
