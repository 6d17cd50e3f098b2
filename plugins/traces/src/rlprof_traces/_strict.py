"""Where a JSON value ends, and whether it is strict JSON; nothing of it is kept.

msgspec reads 1 GB a second and builds nothing. Where it is not installed, as in a lean training
image, the standard library does the same at 50 MB a second.
"""

from __future__ import annotations

import json
import re
from typing import Any

_BEHIND = "JSON is malformed: trailing characters"
_WHERE = re.compile(r"\(byte (\d+)\)$")
_NEAR = 1 << 16
_ODD = {b"N", b"I", *(bytes([n]) for n in range(32))}
"""Where a NaN, an Infinity or a bare line feed may be."""
_BLANK = re.compile(r"[ \t\n\r]*")
_GOES_ON = re.compile(r"-?|t(ru?)?|f(al?|als)?|n(ul?)?|\.|[eE][+-]?")
"""Errors that only show that the text ends."""
_ESCAPE = 6


class VainError(Exception):
    """A value that cannot be read."""


class NoJsonError(VainError):
    """No value begins here; unless it *is_odd*, `lenient` would find none, either."""

    def __init__(self, words: str, *, is_odd: bool = False) -> None:
        super().__init__(words)
        self.is_odd = is_odd


class CutError(VainError):
    """A value goes on beyond the text."""


def end_of_value(text: bytes, at: int) -> int:
    """Return the place after the value at *at* and white space; the value is strict JSON."""
    return _end_by_json(text, at) if _VALUE is None else _end_by_msgspec(text, at)


def is_strict(text: bytes) -> bool:
    """Whether *text* is a whole value, and strict JSON in UTF-8."""
    try:
        return end_of_value(text, 0) == len(text) and is_utf8(text)
    except VainError:
        return False


def is_utf8(text: bytes) -> bool:
    """Whether *text* is valid UTF-8, which `end_of_value` does not look at."""
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


def _end_by_msgspec(text: bytes, at: int) -> int:
    view = memoryview(text)[at:]
    for part in (view[:_NEAR], view):  # who errs, errs early
        try:
            _VALUE.decode(part)
        except _MSGSPEC_ERROR as exc:
            words = str(exc)
            where = _WHERE.search(words)
            if words.startswith(_BEHIND) and where:
                return at + int(where[1]) - 1
            read = int(where[1]) if where else len(part)
            if "truncated" not in words and read < len(part):  # a number may go on
                is_odd = part[read : read + 1] in _ODD or "surrogate" in words or "hex" in words
                raise NoJsonError(words, is_odd=is_odd) from None
            if len(part) == len(view):
                raise CutError(words) from None
        except RecursionError:
            raise NoJsonError("too many levels") from None
        else:
            if len(part) == len(view):
                break
    return len(text)


def _end_by_json(text: bytes, at: int) -> int:
    size = _NEAR
    while True:
        part = text[at : at + size].decode("latin-1")  # a character a byte
        is_all = at + size >= len(text)
        try:
            _, end = _DECODER.raw_decode(part)
        except json.JSONDecodeError as exc:
            rest = part[exc.pos :].rstrip()
            is_cut = exc.msg.startswith("Unterminated") or bool(_GOES_ON.fullmatch(rest))
            is_cut |= exc.msg.startswith("Invalid \\u") and len(rest) <= _ESCAPE
            if not is_cut:
                is_odd = part[exc.pos : exc.pos + 1].encode("latin-1") in _ODD
                raise NoJsonError(exc.msg, is_odd=is_odd) from None
            if is_all:
                raise CutError(exc.msg) from None
        except ValueError as exc:  # a NaN
            raise NoJsonError(str(exc), is_odd=True) from None
        except RecursionError:
            raise NoJsonError("too many levels") from None
        else:
            end = _BLANK.match(part, end).end()  # type: ignore[union-attr]
            if end < len(part) or is_all:
                return at + end
        size <<= 4


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse)
_VALUE: Any = None
_MSGSPEC_ERROR: type[Exception] = ValueError
try:
    import msgspec
except ImportError:
    pass
else:
    _VALUE = msgspec.json.Decoder(msgspec.Raw)
    _MSGSPEC_ERROR = msgspec.DecodeError
