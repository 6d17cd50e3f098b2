"""Lines of JSON: writes and reads records and spans, and a file of them.

A line of a span holds: kind, name, monotonic start and end in ns, step, thread, own id, parent's
id, and what else there is. It is written when the span has ended, by the helper thread.
"""

from __future__ import annotations

import errno
import json
import operator
import os
from contextlib import suppress
from functools import cache
from json.encoder import encode_basestring_ascii
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SALVAGED = "+"
"""The prefix of manifest files about other processes; no role's name begins so."""
_DEEPEST = 50
"""Values nested deeper than this become text if JSON cannot hold them."""
_LONGEST = 64 << 10
"""Characters of an attribute; longer ones are cut, for readers skip lines of many megabytes."""

_HALF = "\\ud"
"""Perhaps half of a surrogate pair, which is no character."""

_quote = encode_basestring_ascii
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

RawSpan = tuple[
    str, str, int, int, int | None, int, int, int | None, int, "Mapping[str, Any] | None"
]
"""kind, name, start, end, step, thread, id, parent, occurrence, attributes: as kept in memory."""

T = TypeVar("T", bound=attrs.AttrsInstance)


def as_line(record: Mapping[str, Any]) -> bytes:
    """Encode *record* as one line of strict JSON; what JSON cannot hold becomes its text."""
    return as_json(record, separators=(",", ":")).encode("ascii") + b"\n"


def as_json(value: Any, **layout: Any) -> str:
    """Write any *value* as strict JSON in ASCII; *layout* as for `json.dumps`."""
    try:
        text = json.dumps(value, default=_number_or_text, allow_nan=False, **layout)
    except (ValueError, TypeError, RecursionError):
        text = ""
    if text and _HALF not in text:
        return text
    return json.dumps(_plain(value), allow_nan=False, **layout)


def _plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Rebuild *value* from what JSON knows: NaN, odd keys, cycles, half characters become text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() < 10_000:  # Python writes no longer ones
        return value
    if isinstance(value, float) and value - value == 0:  # finite
        return value
    if isinstance(value, (dict, list, tuple)) and len(above) < _DEEPEST and id(value) not in above:
        above = (*above, id(value))
        if isinstance(value, dict):
            return {_text(key): _plain(item, above) for key, item in list(value.items())}
        return [_plain(item, above) for item in value]
    number = None if isinstance(value, (int, float)) else number_of(value)
    return _text(value) if number is None else _plain(number, above)


def number_of(value: Any) -> int | float | None:
    """Return the number that *value* is for numpy, torch or another library; None: it is none.

    None for one on a device, too: reading it waits for the device.
    """
    with suppress(Exception):  # another library's code
        dimensions = getattr(value, "ndim", None)
        if dimensions or _is_on_device(value):
            return None
        with suppress(TypeError):
            return operator.index(value)
        if isinstance(value, Real):
            return float(value)
        number = value.item() if dimensions == 0 else None
        return number if isinstance(number, float) else None
    return None


def _is_on_device(value: Any) -> bool:
    """Whether *value* is a tensor in the memory of a device."""
    place = getattr(value, "device", None) if hasattr(value, "item") else None
    return place is not None and "cpu" not in str(place).lower()


def _number_or_text(value: Any) -> Any:
    number = number_of(value)
    return _text(value) if number is None else number


def _text(value: Any) -> str:
    """Return *value* as valid text, even if its own `str` fails."""
    try:
        if _is_on_device(value):
            return f"<{type(value).__name__}>"
        return str(value).encode("utf-8", "backslashreplace").decode()
    except Exception:
        return f"<{type(value).__name__}>"


def known(cls: type[T], fields: Any) -> T:
    """Make a *cls* of *fields*, ignoring fields that *cls* lacks."""
    if not isinstance(fields, dict):
        raise TypeError(fields)
    names = _names(cls)
    return cls(**{key: value for key, value in fields.items() if key in names})


@cache
def _names(cls: type[Any]) -> frozenset[str]:
    return frozenset(attrs.fields_dict(cls))


def span_record(raw: RawSpan) -> dict[str, Any]:
    """Name the fields of *raw* as in the file; empty ones are left out."""
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
    """Encode *raw* as a line, as `as_line(span_record(raw))` does, in less than half the time.

    But cut attributes that are too long.
    """
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
    if _HALF not in line and len(line) <= _LONGEST:
        return line.encode("ascii")
    record = span_record(raw)
    encoded = as_line(record)
    if len(encoded) <= _LONGEST or not attributes:
        return encoded
    noted = record["attributes"].items()
    return as_line(record | {"attributes": {key: _cut(value) for key, value in noted}})


def _cut(value: Any) -> Any:
    """Return *value*, or the beginning of its text if that is too long."""
    text = value if isinstance(value, str) else as_json(value)
    return value if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class Journal:
    """An append-only file of lines with one writer, readable after any crash of that writer.

    It is made on the first write; one `write` call appends many lines.

    Bytes that a full disk refuses stay here: the next call continues where the last was cut. Code
    that closes every descriptor of its process closes ours, too, and its files get their numbers.
    So the descriptor is checked before each use, and the file is opened again if it was lost.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._file: tuple[int, int] | None = None
        """Device and inode of the open file."""
        self._waiting = bytearray()
        self.given = 0
        """Bytes it was given in all."""

    def __len__(self) -> int:
        """How many bytes wait to be written."""
        return len(self._waiting)

    def lines_waiting(self) -> int:
        """How many lines could not be written yet, or not whole."""
        return self._waiting.count(b"\n")

    def write(self, lines: Iterable[bytes]) -> None:
        """Append *lines*; raise OSError if not all of them could be written yet."""
        for line in lines:
            self._waiting += line
            self.given += len(line)
        if not self._waiting:
            return
        fd = self._fd if self._fd is not None and self._is_ours(self._fd) else self._open()
        while self._waiting:
            del self._waiting[: os.write(fd, self._waiting)]

    def close(self) -> None:
        """Close the file; any number of times."""
        fd, self._fd = self._fd, None
        if fd is not None and self._is_ours(fd):
            os.close(fd)

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND
        if self._file is None:  # else it was there; where it was removed, none is made anew
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags |= os.O_CREAT
        self._fd = os.open(self._path, flags, 0o644)
        found = os.fstat(self._fd)
        self._file = found.st_dev, found.st_ino
        return self._fd

    def _is_ours(self, fd: int) -> bool:
        try:
            found = os.fstat(fd)
        except OSError as exc:  # the next write reports a failing file system
            return exc.errno != errno.EBADF
        return (found.st_dev, found.st_ino) == self._file
