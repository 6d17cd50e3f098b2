r"""Turn the almost-JSON that Kineto writes into strict JSON, one event at a time.

Separate from `_kineto.py` because it knows the faults and not the file: text in, text out, no I/O.

What Kineto does to text, read in its `output_json.cpp` and seen with torch 2.13: span names go out
unescaped; in names and args every backslash becomes a slash (so the `\"` that torch wrote arrives
as `/"`) and newlines vanish. Older ones replaced neither.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# The text before and after a name in every layout of Kineto: what is between them is the name,
# whatever it holds. The first that matches counts.
_NAMES = (
    re.compile(
        r'("name": "Iteration Start: )(.*)(", "ph": "i", "s": "g",\n    "pid": )', re.DOTALL
    ),
    re.compile(r'("name": ")(.*)(", "pid": [^\s",]+, "tid": [^\s",]+,\n    "ts": )', re.DOTALL),
    re.compile(r'("name": ")(.*)(",\n    "pid": )', re.DOTALL),
    re.compile(r'("args": \{\n      "(?:name|labels)": ")(.*)("\n    \}\n  \})', re.DOTALL),
)
_ARGS = re.compile(r'("args":\s*\{)(.*)(\}\s*\})\s*\Z', re.DOTALL)

_LONGEST = 1 << 20  # a damaged event beyond this is a hole in the file, not an event

# C++ prints nan and inf, Python NaN and Infinity.
_TOKEN = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|(?<![\w.])[-+]?(?:nan|inf(?:inity)?)\b', re.DOTALL | re.IGNORECASE
)
_ESCAPE = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r'|(?P<plain>\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|(?P<stray>[\\\x00-\x1f])',
)
# A quote ends a string only where JSON can go on after it.
_LOOSE = re.compile(
    r'"(.*?)(?<!\\)"(?=\s*(?:[\]}:]|,\s*(?:["\[{\d-]|true\b|false\b|null\b)|\Z))', re.DOTALL
)
_ENDS = re.compile(rb"\n  \}(?=\s*(?:,\s*\{|\]|\Z))")
"""Where an event ends in Kineto's lines."""


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse)


def strict(text: str) -> Any:
    """Return the value of *text*; ValueError when a strict reader (RFC 8259) could refuse it."""
    try:
        value = _STRICT.decode(text)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    if "\\u" in text:
        # The grammar allows half a surrogate pair, orjson, serde and simdjson do not.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def repaired(text: bytes, at: int) -> tuple[bytes, int] | None:
    """Return the event that Kineto meant at *at*, as strict JSON, and where it ends."""
    end = _ENDS.search(text, at)
    fixed = None if end is None else event(text[at : end.end()].decode("utf-8", "replace"))
    return None if end is None or fixed is None else (fixed.encode(), end.end())


def event(text: str) -> str | None:
    """Return the event *text* as strict JSON, or None when it cannot be read at all.

    Args that stay unreadable are kept as one string, `{"unreadable": …}`: the span stays in place.
    """
    if _is_object(text):
        return text
    if len(text) > _LONGEST:
        return None
    text = _rename(text)
    read = next(filter(_is_object, _readings(text)), None)
    if read is not None:
        return read
    text = _ARGS.sub(lambda m: f'{m[1]}"unreadable": {json.dumps(m[2].strip())}{m[3]}', text)
    return text if _is_object(text) else None


def _is_object(text: str) -> bool:
    try:
        return isinstance(strict(text), dict)
    except ValueError:
        return False


def _rename(text: str) -> str:
    for pattern in _NAMES:
        match = pattern.search(text)
        if match and '\n  {\n    "' not in match[2]:  # else: more than one event
            return text[: match.start(2)] + _inner(match[2]) + text[match.end(2) :]
    return text


def _inner(text: str) -> str:
    """Return the text between the quotes of a JSON string, repaired if it is invalid."""
    try:
        if isinstance(strict(f'"{text}"'), str):
            return text
    except ValueError:
        pass
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _readings(text: str) -> Iterator[str]:
    """Yield readings of *text* from the likeliest to the boldest; the caller takes the first."""
    undone = text.replace('/"', '\\"')  # what Kineto did to an escaped quote
    yield text
    yield _clean(text)
    yield _clean(undone)
    for loose in (undone, text):
        yield _clean(_LOOSE.sub(lambda m: f'"{_inner(m[1])}"', loose))


def _clean(text: str) -> str:
    """Repair the text inside strings, and turn bare NaN and Infinity into null."""
    return _TOKEN.sub(_clean_token, text)


def _clean_token(match: re.Match[str]) -> str:
    token = match[0]
    if not token.startswith('"'):
        return "null"
    return _ESCAPE.sub(_escape, token)


def _escape(match: re.Match[str]) -> str:
    if match["half"]:
        return "\\ufffd"
    if match["stray"]:
        return json.dumps(match["stray"])[1:-1]
    return match[0]
