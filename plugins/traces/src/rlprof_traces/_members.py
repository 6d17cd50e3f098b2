"""The members of a JSON object, one by one, as far as its text goes.

Nothing is built of what is passed over, so 32 MB of it cost no memory. Separate because a head, a
tail and a damaged event (`_salvage.py`) are all read so.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import attrs

from rlprof_traces._strict import CutError, NoJsonError, end_of_value, is_utf8

_LENIENT = json.JSONDecoder(strict=False, parse_constant=str)
BLANK = re.compile(rb"\s*")
SEPARATOR = re.compile(rb"[\s,]*")
"""Between members, and between events; damage may leave many commas, or none."""
_COLON = re.compile(rb"\s*:\s*")
_LARGEST = 1 << 20
"""Most bytes that are decoded: a larger member is skipped."""


def as_utf8(text: bytes) -> bytes:
    """Return *text*, with a mark for invalid UTF-8."""
    return text if is_utf8(text) else text.decode("utf-8", "replace").encode()


def behind(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    """Return the place behind what *pattern* matches at *at*, if it does."""
    found = pattern.match(text, at)
    return found.end() if found else at


def lenient(text: bytes, at: int = 0, decoder: json.JSONDecoder = _LENIENT) -> tuple[Any, int]:
    """Build the value at *at*, with a NaN, a bare line feed or bad UTF-8; say where it ends.

    Raise as `end_of_value`.
    """
    size = 1 << 8
    while True:
        # A character a byte, so that the end is one in *text*.
        part = text[at : at + size].decode("latin-1")
        try:
            found, end = decoder.raw_decode(part)
            if not part.isascii():
                own = text[at : at + end].decode("utf-8", "replace")
                found, _ = decoder.raw_decode(own)
        except json.JSONDecodeError as exc:
            is_cut = exc.msg.startswith("Unterminated") or exc.pos >= len(part.rstrip()) - 9
            if not is_cut:
                raise NoJsonError(exc.msg) from None
            if at + size >= len(text):
                raise CutError(exc.msg) from None
            if size >= _LARGEST:
                raise NoJsonError("too large to be repaired") from None
            size <<= 4
        except (ValueError, ArithmeticError, RecursionError) as exc:  # 5000 digits, 1000 levels
            raise NoJsonError(str(exc)) from None
        else:
            return found, at + end


@attrs.define
class Members:
    """The part of an object read so far."""

    at: int
    """Where to go on."""
    found: dict[str, Any] = attrs.field(factory=dict)
    is_broken: bool = False
    """Whether something else than a member was met at `at`."""

    def read(self, text: bytes, stop: str = "") -> bool:
        """Read on; return whether the member *stop*, a list, begins at `at`; else it was all.

        Raise `CutError` where there is not enough of *text*; go on when there is more.
        """
        try:
            return self._read(text, stop)
        except NoJsonError:
            self.is_broken = True
            raise

    def _read(self, text: bytes, stop: str) -> bool:
        while True:
            at = behind(SEPARATOR, text, self.at)
            if at == len(text):
                raise CutError("ends")
            if text[at : at + 1] == b"}":
                self.at = at + 1
                return False
            if text[at : at + 1] != b'"':
                raise NoJsonError("expected a member")
            end = end_of_value(text, at)
            begin = behind(_COLON, text, end)
            if begin == len(text):
                raise CutError("ends")
            if begin == end:
                raise NoJsonError("expected a colon")
            key, _ = lenient(text[at:end]) if end - at < _LARGEST else ("", 0)
            if key == stop and stop and text[begin : begin + 1] == b"[":
                self.at = begin
                return True
            self.at = self._member(key, text, begin)

    def _member(self, key: str, text: bytes, at: int) -> int:
        try:
            end = end_of_value(text, at)
        except NoJsonError as exc:
            if not exc.is_odd:
                raise
            self.found[key], end = lenient(text, at)
            return end
        if end == len(text):  # a number may go on
            raise CutError("ends")
        self.found[key] = None
        if end - at <= _LARGEST:
            with suppress(NoJsonError, CutError):
                self.found[key], _ = lenient(text[at:end])
        return end
