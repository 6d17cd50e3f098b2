"""Today's layout of Kineto: finds the members of the events in a batch.

Each member is on a separate line, indented by four spaces, and no value holds a line feed. So their
bytes show where all of them are, and no event is decoded. Separate from `_inplace.py`, which moves
the members found here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import attrs

INDENT = "\n    "
"""The text before each member."""
_MEMBERS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "s", "bp", "args")
_IN_EACH = ("ph", "pid", "tid", "ts")
_FIRST = {"ph": '"', "name": '"', "cat": '"', "s": '"', "bp": '"', "args": "{"}
"""The first characters of the values that are not numbers."""
_FACTOR, _BITS = 9643, 4
"""They map the start of each member's line to a different place of a small table."""
_START = b"\n  {"
_END = b"\n  },"
_NEAR_END = 64
_JOINED = b"stfbne"
"""The phases of flows and async events."""
_BEHIND = b"\n" * 64
"""Padding, so that no read goes past the end."""


@attrs.frozen(eq=False)
class Layout:
    """A batch as numbers, and the places of the members of its events."""

    text: bytearray
    """The batch, writable, with padding behind it."""
    bytes: Any
    words: Any
    """The eight bytes from any byte on, as one number."""
    starts: Any
    """The line feed before each event."""
    lines: dict[str, Any]
    """The line feed before each member, by its name."""

    def values(self, name: str) -> Any:
        """Return the places where the values of a member begin."""
        return self.lines[name] + len(f'{INDENT}"{name}": ')

    @property
    def phases(self) -> Any:
        """The letter of each event's phase."""
        return self.bytes[self.values("ph") + 1]


def layout_of(batch: bytes) -> Layout | None:
    """Find the members of all events; None: the layout differs from Kineto's."""
    import numpy as np

    size, indent = len(batch), len(INDENT)
    text = bytearray().join((batch, _BEHIND))
    letters = np.frombuffer(text, np.uint8)
    words = np.ndarray((len(text) - 7,), "<u8", text, strides=(1,))
    is_line = letters[:size] == ord("\n")
    ends = np.count_nonzero(is_line & (letters[3 : size + 3] == ord("}")))
    is_line &= letters[indent : size + indent] == ord('"')
    lines = np.flatnonzero(is_line)
    # Lines with a quote in this place are members, or deeper: `\n "a": {` is not indented so.
    begins = words[lines + 1]
    known, factor, shift = _known()
    kinds = (begins * factor >> shift).astype(np.uint8)
    if not np.array_equal(known[kinds], begins):
        return None
    # Behind arguments an event ends; what else stands there is in them, though not deeper.
    if np.any(kinds[1:][kinds[:-1] == _kind("args")] != _kind("ph")):
        return None
    by_name = {name: lines[np.flatnonzero(kinds == _kind(name))] for name in _MEMBERS}
    starts = by_name["ph"] - len(_START)
    if not batch[-_NEAR_END:].rstrip().endswith(_END[:-1]):
        return None  # what follows the last of them, of another layout, has no begin here
    if not len(starts) or len(starts) != ends or starts[0] < 0 or batch[: starts[0]].strip():
        return None
    found = Layout(text, letters, words, starts, by_name)
    return found if _are_events(found) and _are_values(found) else None


def word(text: bytes) -> int:
    """Return *text*, of eight bytes at most, as a number."""
    return int.from_bytes(text, "little")


def _begin(name: str) -> int:
    """Return the begin of a member's line, as a number."""
    return word(f'    "{name}":'.encode()[:8])


@cache
def _known() -> tuple[Any, Any, Any]:
    """Return a table of the starts of members' lines, and the factor and shift to index it."""
    import numpy as np

    table = np.zeros(1 << _BITS, "<u8")
    for name in _MEMBERS:
        table[_kind(name)] = _begin(name)
    return table, np.uint64(_FACTOR), np.uint64(64 - _BITS)


@cache
def _kind(name: str) -> int:
    return (_begin(name) * _FACTOR & (1 << 64) - 1) >> 64 - _BITS


def _are_events(found: Layout) -> bool:
    """Whether each event begins right behind the last and has every required member once."""
    starts, lines = found.starts, found.lines
    return (
        _stands(found, starts, _START)
        and _stands(found, starts[1:] - len(_END), _END)
        and all(
            _stands(found, lines[name] + len(INDENT), f'"{name}": '.encode())
            for name in (*_IN_EACH, "dur", "id")
        )
        and all(_are_within(found, lines[name]) for name in _IN_EACH)
        and _are_within(found, lines["dur"], found.phases == ord("X"))
        and _have_ids(found)
    )


def _have_ids(found: Layout) -> bool:
    """Whether each flow has its id on a line: else it might join one of another trace."""
    import numpy as np

    left = np.isin(found.phases, np.frombuffer(_JOINED, np.uint8))
    left[np.searchsorted(found.starts, found.lines["id"]) - 1] = False
    return not left.any()


def _stands(found: Layout, at: Any, text: bytes) -> bool:
    """Whether *text* is at each place."""
    mask = (1 << 8 * len(text)) - 1
    return bool((found.words[at] & mask == word(text)).all())


def _are_within(found: Layout, lines: Any, which: Any = slice(None)) -> bool:
    """Whether one of *lines* is in each event, or in each of *which*."""
    import numpy as np

    starts, ends = found.starts[which], np.append(found.starts[1:], len(found.text))[which]
    return len(starts) == len(lines) and bool(np.all((starts < lines) & (lines < ends)))


def _are_values(found: Layout) -> bool:
    """Whether the values of members have the right kinds; some numbers are read later."""
    return (
        all((found.bytes[found.values(key)] == ord(first)).all() for key, first in _FIRST.items())
        and all((found.bytes[found.values(key) + 2] == ord('"')).all() for key in ("ph", "s"))
        and _are_numbers(found, found.values("dur"), 16, b".")
        and _are_numbers(found, found.values("id"), 14, b"0")
    )


def _are_numbers(found: Layout, at: Any, longest: int, point: bytes) -> bool:
    """Whether the values are digits, with an optional *point*, in less than *longest* bytes."""
    import numpy as np

    text = np.lib.stride_tricks.sliding_window_view(found.bytes, longest)[at]
    is_digit = (text - ord("0") < 10) | (text == ord(point))
    widths = np.argmin(is_digit, axis=1)
    after = text[np.arange(len(at)), widths]
    return bool(np.all((widths > 0) & ((after == ord(",")) | (after == ord("\n")))))
