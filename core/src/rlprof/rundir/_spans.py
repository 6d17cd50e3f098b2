"""Spans as lines of a file.

A line holds: kind, name, monotonic start and end in ns, step, thread, own id, parent's id, and
what else there is. It is written when the span has ended, by the helper thread.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from rlprof.rundir._journal import as_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_HALF = "\\ud"
"""Perhaps half of a surrogate pair, which is no character."""

_quote = encode_basestring_ascii
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

RawSpan = tuple[
    str, str, int, int, int | None, int, int, int | None, int, "Mapping[str, Any] | None"
]
"""kind, name, start, end, step, thread, id, parent, occurrence, attributes: as kept in memory."""


def span_record(raw: RawSpan) -> dict[str, Any]:
    """Name the fields of *raw* as the file does; what says nothing is left out."""
    kind, name, start, end, step, thread, own_id, parent, occurrence, attributes = raw
    record: dict[str, Any] = {"kind": kind, "name": name, "t0": start, "t1": end}
    record |= {"step": step, "thread": thread, "id": own_id}
    if parent is not None:
        record["parent"] = parent
    if occurrence:
        record["occurrence"] = occurrence
    if attributes:
        record["attributes"] = dict(attributes)
    return record


def _object(attributes: Mapping[str, Any]) -> str:
    """Encode *attributes*; most are whole numbers and text, which need no encoder."""
    try:
        pairs = [
            f"{_quote(key)}:{value if type(value) is int else _quote(value)}"
            for key, value in attributes.items()
        ]
    except TypeError:
        return _encode(dict(attributes))
    return f"{{{','.join(pairs)}}}"


def span_line(raw: RawSpan) -> bytes:
    """Encode *raw* as a line, as `as_line(span_record(raw))` does, in less than half the time."""
    kind, name, start, end, step, thread, own_id, parent, occurrence, attributes = raw
    rest = f',"parent":{parent}' if parent is not None else ""
    if occurrence:
        rest += f',"occurrence":{occurrence}'
    try:
        if attributes:
            rest += f',"attributes":{_object(attributes)}'
        line = (
            f'{{"kind":"{kind}","name":{_quote(name)},"t0":{start},"t1":{end},'
            f'"step":{"null" if step is None else step},"thread":{thread},"id":{own_id}{rest}}}\n'
        )
    except (ValueError, TypeError, RecursionError):
        line = _HALF
    return as_line(span_record(raw)) if _HALF in line else line.encode("ascii")
