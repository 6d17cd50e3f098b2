"""What a merged timeline holds, by a reader that knows nothing of how it was made.

It takes `json`'s word for every event, one at a time, so it needs no memory for large files.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TextIO

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK = 4 << 20
_SPACE = re.compile(r"\s*")


@attrs.define
class Found:
    """What there is of the ranks' traces; neither rlprof's events nor Kineto's mark are counted."""

    events: int = 0
    threads: set[Any] = attrs.field(factory=set)
    """Those that have slices."""
    shared: int = 0
    """Ends of arrows that have the id of another such end."""
    ends_ns: list[int] = attrs.field(factory=list)
    """When each rank left the barrier, on the clock of the file, in the order of time."""
    _arrows: set[tuple[str, ...]] = attrs.field(factory=set)

    @property
    def spread_ns(self) -> int:
        """Return how far the ends of the barrier are apart."""
        return max(self.ends_ns, default=0) - min(self.ends_ns, default=0)

    def off_ns(self, errors_ns: list[int]) -> float:
        """Return how far the ranks are from standing as far apart as *errors_ns* are."""
        if len(self.ends_ns) != len(errors_ns):
            return float("inf")
        after = [end - self.ends_ns[0] for end in self.ends_ns]
        wanted = [error - min(errors_ns) for error in sorted(errors_ns)]
        return max(abs(a - b) for a, b in zip(after, wanted, strict=True))

    def add(self, event: dict[str, Any]) -> None:
        """Look at an *event*."""
        ph, cat = event["ph"], str(event.get("cat"))
        if ph == "M" or cat.startswith("rlprof") or event["name"] == "Record Window End":
            return
        self.events += 1
        if ph == "X":
            self.threads.add((event["pid"], event["tid"]))
            if event["name"] == "barrier":
                end_us = Decimal(event["ts"]) + Decimal(event["dur"])
                self.ends_ns.append(round(end_us * 1000))
        elif ph in "sf":
            arrow = (cat, ph, str(event["id"]))
            self.shared += arrow in self._arrows
            self._arrows.add(arrow)


def look(file: Path) -> Found:
    """Read *file* to its end: strict JSON, or the same gzipped."""
    found = Found()
    with file.open("rb") as raw, _text(raw) as stream:
        for event in _events(stream):
            found.add(event)
    found.ends_ns.sort()
    found._arrows.clear()
    return found


@contextmanager
def _text(raw: Any) -> Iterator[TextIO]:
    is_gzip = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    with io.TextIOWrapper(gzip.GzipFile(fileobj=raw) if is_gzip else raw, "utf-8") as stream:
        yield stream


def _events(stream: TextIO) -> Iterator[dict[str, Any]]:
    """Yield the events of one trace; all of it must be JSON."""
    text = _Text(stream)
    text.take("{")
    while True:
        key = text.value()
        text.take(":")
        if key == "traceEvents":
            text.take("[")
            while text.next() != "]":
                yield text.value()
                if text.next() == ",":
                    text.take(",")
                    assert text.next() != "]", "a comma after the last event"
            text.take("]")
        else:
            text.value()
        if text.next() == "}":
            break
        text.take(",")
    text.take("}")
    assert not text.next(), "something after the end"


class _Text:
    """JSON that is read value by value."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._decode = json.JSONDecoder(parse_float=str, parse_constant=_refuse).raw_decode

    def _more(self) -> None:
        data = self._stream.read(_CHUNK)
        self._ended = not data
        self._buffer = self._buffer[self._at :] + data
        self._at = 0

    def next(self) -> str:
        """Return the next character that is no space; nothing at the end."""
        while True:
            self._at = _SPACE.match(self._buffer, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._buffer) or self._ended:
                return self._buffer[self._at : self._at + 1]
            self._more()

    def take(self, char: str) -> None:
        """Go past *char*, which must come next."""
        assert self.next() == char, f"{char!r} expected, {self._buffer[self._at :][:40]!r} found"
        self._at += 1

    def value(self) -> Any:
        """Read the next value."""
        self.next()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except ValueError:
                if self._ended:
                    raise
            else:
                if end < len(self._buffer) or self._ended:  # a number may go on
                    self._at = end
                    return value
            self._more()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
