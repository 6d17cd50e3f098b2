r"""One event as one line of JSON that Perfetto reads as it was meant.

Separate because its rules are Perfetto's, not ours. Measured on v52: it shows escapes as they
stand in the file (`\n`, `\u00f6`), a string that ends in an escaped backslash breaks the whole
trace, an escaped lone surrogate can hang it. So no line holds a backslash; other text is kept.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAIN = {
    **dict.fromkeys(range(32), " "),
    ord("\\"): "/",
    ord('"'): "'",
    **dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}"),
}
_ESCAPE = re.compile(
    rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|.)"
)
_DEEPEST = 50
"""Levels of lists and objects kept where something must be replaced."""


def nanoseconds(us: object) -> int | None:
    """Turn the microseconds of a trace into whole nanoseconds, exactly; None if invalid."""
    # From 10**16 us, the year 2286, no clock is meant; 1e999999 would be a million digits.
    if type(us) is Decimal and us.is_finite() and us.adjusted() < 16:
        return int((us * 1000).to_integral_value())
    if type(us) is int and abs(us) < 10**16:
        return us * 1000
    return None


def timed(event: dict[str, Any], at_ns: int, dur_ns: int | None = None) -> bytes:
    """Encode *event*, which has more members, with its time and duration as exact decimals."""
    dur = "" if dur_ns is None else f'"dur":{_us(dur_ns)},'
    return f'{{"ts":{_us(at_ns)},{dur}'.encode() + encode(event)[1:]


def encode(value: Any) -> bytes:
    """Encode *value* as strict JSON in UTF-8 without a single escape."""
    try:
        text = _json(value)
        if "\\" not in text:
            return text.encode()
    except (ValueError, RecursionError):  # a NaN, half a surrogate pair, a thousand levels
        pass
    return _json(_plain(value, 0)).encode()


def named(kind: str, pid: int, tid: int, name: str, places: Iterator[int]) -> Iterator[bytes]:
    """Name a process or a thread, and give it the next place."""
    event = {"ph": "M", "pid": pid, "tid": tid}
    if name:
        yield encode(event | {"name": f"{kind}_name", "args": {"name": name}})
    yield encode(event | {"name": f"{kind}_sort_index", "args": {"sort_index": next(places)}})


def unescaped(text: bytes) -> bytes:
    """Rid strict JSON of escapes, whatever its size and depth; nothing of it is built."""
    return _ESCAPE.sub(_plain_character, text)


def _plain_character(found: re.Match[bytes]) -> bytes:
    high, low, other = found.groups()
    if high:
        code = 0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
    elif other:
        code = int(other, 16)
    else:  # \\n and the like are control characters
        code = found[0][1] if found[0][1] in b'"\\/' else 0
    return chr(code).translate(PLAIN).encode()


def _us(ns: int) -> str:
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def _number(value: Any) -> float | str:
    return float(value) if math.isfinite(float(value)) else str(value)


_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_number
).encode


def _plain(value: Any, level: int) -> Any:
    if isinstance(value, str):
        return value.translate(PLAIN)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (dict, list, tuple)) and level == _DEEPEST:
        return "..."
    if isinstance(value, dict):
        return {str(k).translate(PLAIN): _plain(item, level + 1) for k, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, level + 1) for item in value]
    return value
