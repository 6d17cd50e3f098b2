r"""Turn the almost-JSON that Kineto writes into strict JSON, one event or metadata block at a time.

Separate from `_kineto.py` because it knows the faults and not the file: text in, text out, no I/O.
Undecodable bytes arrive as lone surrogates (`errors="surrogateescape"`).

What Kineto does to text, read in its `output_json.cpp` and seen with torch 2.13: span names and
metadata keys go out unescaped; in names, args and metadata values every backslash becomes a slash
(so the `\"` that torch wrote arrives as `/"`) and newlines vanish. Older ones replaced neither.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# One top-level key per line (torch 2.13) or several (before): `"ph": "X", "cat": …, "name": …,`.
_KEY_PER_LINE = re.compile(r'\s*\{\n    "ph": "\w",\n')
# `[^"]*` although a rightly escaped quote is then suspected too: three times as fast.
_FORGED_LINE = re.compile(r'\n    "name": "[^"]*"(?!,?\n)')
_FORGED_SPAN = re.compile(
    r'\n    "ph": "X", "cat": "[^"]*", "name": "[^"]*"(?!, "pid": [^\s",]+, "tid": [^\s",]+,\n)',
)

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

_SURROGATE = re.compile("[\ud800-\udfff]")
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

_KEY = re.compile(r'\s*("[^"\\\n]*(?:\\.[^"\\\n]*)*")\s*:\s*')
_MEMBER_ENDS = re.compile(r"[ \t]*,?[ \t]*(?:\n|\Z)")
_OPENING = re.compile(r"(?:[ \t]*\n)*([ \t]*)\S[^\n]*[\[{][ \t]*\n")
_NEXT_MEMBER = re.compile(r'\n\s*(?="[^\n]*":)')
_TEXT_MEMBER = re.compile(r'"(.*?)":\s*"(.*)"', re.DOTALL)


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


def is_forged(events: str) -> bool:
    """Tell whether a name in Kineto's lines closes its own quotes, and so forges keys.

    A span named `x", "pid": 3, "y": "` leaves valid JSON with a false pid. Costs 0.7 ns a byte.
    """
    pattern = _FORGED_LINE if _KEY_PER_LINE.match(events) else _FORGED_SPAN
    return pattern.search(events) is not None


def event(text: str) -> str | None:
    """Return the event *text* as strict JSON, or None when it cannot be read at all.

    Args that stay unreadable are kept as one string, `{"unreadable": …}`: the span stays in place.
    """
    text = _SURROGATE.sub("\ufffd", text)
    if _is_object(text) and not is_forged(text):
        return text
    if len(text) > _LONGEST:
        return None
    text = _rename(text)
    mended = next(filter(_is_object, _mended(text)), None)
    if mended is not None:
        return mended
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


def _mended(text: str) -> Iterator[str]:
    """Yield readings of *text* from the likeliest to the boldest; the caller takes the first."""
    undone = text.replace('/"', '\\"')  # what Kineto did to an escaped quote
    yield text
    yield _clean(text)
    yield _clean(undone)
    member = _TEXT_MEMBER.fullmatch(text) if text.endswith('"') else None
    if member:
        key, value = _inner(member[1]), _inner(member[2].replace('/"', '"'))
        yield f'"{key}": "{value}"'
    for loose in (undone, text):
        yield _clean(_LOOSE.sub(lambda m: f'"{_inner(m[1])}"', loose))


def _clean(text: str) -> str:
    """Repair the text inside strings, and turn bare NaN and Infinity into null."""
    return _TOKEN.sub(_clean_token, text)


def _clean_token(match: re.Match[str]) -> str:
    token = match[0]
    if not token.startswith('"'):
        return "null"
    if "\\" not in token and token.isprintable():  # most of them
        return token
    return _ESCAPE.sub(_escape, token)


def _escape(match: re.Match[str]) -> str:
    if match["half"]:
        return "\\ufffd"
    if match["stray"]:
        return json.dumps(match["stray"])[1:-1]
    return match[0]


@attrs.frozen
class Members:
    """The top-level keys of a piece of the file: each key with its value as JSON text."""

    values: Mapping[str, str]
    repaired: int
    dropped: int


def members(text: str) -> Members:
    """Return every member that can be kept of *text*, the inside of an object.

    Of two values for one key the last counts, as it does for `json.loads`.
    """
    text = _SURROGATE.sub("\ufffd", text).rstrip(", \t\r\n").lstrip(",\r\n")
    values: dict[str, str] = {}
    repaired = dropped = position = 0
    while position < len(text):
        member = _member(text, position)
        if member is not None:
            key, value, position = member
            values[key] = value
            continue
        end = _extent(text, position)
        found, as_it_was = _mended_members(text[position:end].strip(" \t\n,"))
        values |= found
        repaired += 0 if as_it_was else len(found)
        dropped += not found
        position = end
    return Members(values, repaired, dropped)


def _member(text: str, position: int) -> tuple[str, str, int] | None:
    """Return key, value and end of the member that starts at *position* and ends its line."""
    key = _KEY.match(text, position)
    if key is None:
        return None
    try:
        _, end = _STRICT.raw_decode(text, key.end())
        value = text[key.end() : end]
        strict(value)
        name = strict(key[1])
    except (ValueError, RecursionError):
        return None
    after = _MEMBER_ENDS.match(text, end)
    return (name, value, after.end()) if after else None


def _extent(text: str, position: int) -> int:
    """Return where a damaged member ends: at its closing bracket or before the next key."""
    opening = _OPENING.match(text, position)
    if opening:
        closing = re.compile(rf"\n{opening[1]}[\]}}],?[ \t]*(?=\n|\Z)").search(text, position)
        if closing:
            return closing.end()
    following = _NEXT_MEMBER.search(text, position + 1)
    return following.start() if following else len(text)


def _mended_members(text: str) -> tuple[dict[str, str], bool]:
    """Return the members that *text* can be read as, and whether it needed no repair."""
    for candidate in _mended(text):
        try:
            value = strict(f"{{{candidate}}}")
            found = {key: json.dumps(item, allow_nan=False) for key, item in value.items()}
        except ValueError:  # no JSON, or 1e400, which Python reads as infinite
            continue
        return found, candidate is text
    return {}, False
