"""A window of events in the layout that Kineto writes today, moved without decoding an event.

Each member stands on a line of its own there, indented by four spaces. The new number takes the
room of the old one and of that white space, so nothing else moves, and a window is a few dozen
operations of numpy. What is not exactly so is for `_events.py`: an event, if it is one of few, or
the window. Separate for its speed, two to three times that of `_events.py`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from rlprof_timeline._decimals import WIDEST, in_microseconds, microseconds
from rlprof_timeline._events import moved
from rlprof_timeline._place import FIRST_WORDS, LAST_NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_timeline._place import Place

_MEMBERS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "s", "bp", "args")
_IN_EACH = ("ph", "pid", "tid", "ts")
_FIRST = {"name": '"', "cat": '"', "s": '"', "bp": '"', "args": "{"}
"""How the values of members begin that are not looked at further."""
_JOINED = b"stfbne"
"""The phases of flows and async events."""
_FACTOR, _BITS = 9643, 4
"""They send the begin of each member's line to another place of a small table."""
_HEAD = len("\n    ")
_START = b"\n  {"
_END = b"\n  },"
_NEAR_END = 64
_QUOTE = ord('"')
_MANY = 256
"""Distinct numbers of a window: each costs a look at all that are left."""
_FEW = 64
"""Odd events of a window: each costs a copy of a piece of it."""
_LATEST_NS = 10**18
_TIME = re.compile(rb"\d{1,16}\.\d{3}[,\n]")
_SLICE = re.compile(
    rb' +"name": "(?P<name>[^"]*)".*?\n    "dur": (?P<us>\d+(?:\.\d+)?)[,\n]', re.DOTALL
)


def moved_in_place(window: bytes, to: Place) -> bytes | memoryview | None:
    """Return the events of *window* as they stand on the timeline; None: the layout is another."""
    if to.is_cut or b"\\" in window or b'\n    "ts": ' not in window[: 1 << 16]:
        return None
    if abs(to.shift_ns) > LAST_NS:
        return None
    try:
        return _Window(window, to).moved()
    except _TooManyError:
        return None


def _word(text: bytes) -> int:
    return int.from_bytes(text, "little")


def _begin(name: str) -> int:
    """Return the begin of a member's line, as a number."""
    return _word(f'    "{name}":'.encode()[:8])


@cache
def _known() -> tuple[Any, Any, Any]:
    """Return where the begin of each member's line stands in a table, and the table."""
    import numpy as np

    table = np.zeros(1 << _BITS, "<u8")
    for name in _MEMBERS:
        table[_kind(name)] = _begin(name)
    return table, np.uint64(_FACTOR), np.uint64(64 - _BITS)


@cache
def _kind(name: str) -> int:
    return (_begin(name) * _FACTOR & (1 << 64) - 1) >> 64 - _BITS


class _TooManyError(Exception):
    """There are too many distinct numbers for this way."""


class _Window:
    """One window, as numbers."""

    def __init__(self, window: bytes, to: Place) -> None:
        import numpy as np

        self._np: Any = np
        self._window = window
        self._to = to
        self._text = bytearray().join((window, b"\n" * 64))  # what is looked at is always there
        self._bytes = np.frombuffer(self._text, np.uint8)
        # The eight bytes from any byte on, as one number.
        self._words = np.ndarray((len(self._text) - 7,), "<u8", self._text, strides=(1,))

    def moved(self) -> bytes | memoryview | None:
        """Do it; what was written so far is of no harm where it cannot be done."""
        np, to = self._np, self._to
        found = self._members()
        if found is None:
            return None
        starts, at = found
        first = at["ph"] + _HEAD + len('"ph": "')
        phases = self._bytes[first]
        if not np.all((self._bytes[first - 1] == _QUOTE) & (self._bytes[first + 1] == _QUOTE)):
            return None
        if not self._are_durations(at["dur"] + _HEAD + len('"dur": ')):
            return None
        if not self._have_ids(starts, phases, at["id"]):
            return None
        pids, odd_pids = self._small_numbers(at["pid"] + _HEAD + len('"pid": '))
        tids, odd_tids = self._small_numbers(at["tid"] + _HEAD + len('"tid": '))
        ns, widths, odd_times = self._times(at["ts"] + _HEAD + len('"ts": '))
        odd = (phases == ord("M")) | odd_pids | odd_tids | odd_times
        slices = np.flatnonzero(phases == ord("X"))
        if not self._are_within(starts, slices, at["dur"]) or odd.sum() > _FEW:
            return None
        good = np.flatnonzero(~odd)
        if len(good):
            moved_ns = ns + to.shift_ns
            ns = moved_ns[good]
            low, high = int(ns.min()), int(ns.max())
            if low < 0 or high >= _LATEST_NS or not self._write_ids(at["id"]):
                return None
            if not self._write_times(at["ts"][good], widths[good], ns):
                return None
            if not self._write_places(at["pid"][good], pids[good], tids[good]):
                return None
            to.saw(low)
            to.events += len(good)
            self._meet(at["name"], starts, np.where(odd, -1, moved_ns))
        return self._joined(starts, np.flatnonzero(odd))

    def _members(self) -> tuple[Any, dict[str, Any]] | None:
        """Find the line feed before each event and each member; None: one is not as it should."""
        np = self._np
        size = len(self._window)
        is_line = self._bytes[:size] == ord("\n")
        ends = np.count_nonzero(is_line & (self._bytes[3 : size + 3] == ord("}")))
        is_line &= self._bytes[_HEAD : size + _HEAD] == ord('"')
        lines = np.flatnonzero(is_line)
        # Lines with a quote in this place are members, or deeper: `\n "a": {` is not indented so.
        words = self._words[lines + 1]
        known, factor, shift = _known()
        kinds = (words * factor >> shift).astype(np.uint8)
        if not np.array_equal(known[kinds], words):
            return None
        # Behind arguments an event ends; what else stands there is in them, though not deeper.
        behind = kinds[1:][kinds[:-1] == _kind("args")]
        if np.any(behind != _kind("ph")):
            return None
        at = {name: lines[np.flatnonzero(kinds == _kind(name))] for name in _MEMBERS}
        if not len(at["ph"]):
            return None
        starts = at["ph"] - len(_START)
        mask = (1 << 8 * len(_START)) - 1
        if starts[0] < 0 or not np.all(self._words[starts] & mask == _word(_START)):
            return None
        if self._window[: starts[0]].strip():
            return None
        if (
            ends != len(starts)
            or not self._are_closed(starts)
            or not all(
                np.all(self._bytes[at[name] + _HEAD + len(f'"{name}": ')] == ord(first))
                for name, first in _FIRST.items()
            )
        ):
            return None
        for name in (*_IN_EACH, "dur", "id"):
            key = f'"{name}": '.encode()
            mask = (1 << 8 * len(key)) - 1
            if name in _IN_EACH and not self._are_within(starts, None, at[name]):
                return None
            if not np.all(self._words[at[name] + _HEAD] & mask == _word(key)):
                return None
        return starts, at

    def _are_closed(self, starts: Any) -> bool:
        """Whether each event but the first begins right behind the end of one, the last at its."""
        np = self._np
        if not self._window[-_NEAR_END:].rstrip().endswith(_END[:-1]):
            return False  # what follows it, of another layout, has no begin here
        before = self._words[starts[1:] - len(_END)]
        return bool(np.all(before & ((1 << 8 * len(_END)) - 1) == _word(_END)))

    def _are_durations(self, at: Any) -> bool:
        """Whether they are decimals, of less than a year."""
        np = self._np
        text = np.lib.stride_tricks.sliding_window_view(self._bytes, 16)[at]
        is_digit = (text - ord("0") < 10) | (text == ord("."))
        widths = np.argmin(is_digit, axis=1)
        after = text[np.arange(len(at)), widths]
        return bool(np.all((widths > 0) & ((after == ord(",")) | (after == ord("\n")))))

    def _are_within(self, starts: Any, which: Any, lines: Any) -> bool:
        """Whether each of *lines* is in its own event, of *which* or of all."""
        np = self._np
        ends = np.append(starts[1:], len(self._text))
        if which is not None:
            starts, ends = starts[which], ends[which]
        return len(starts) == len(lines) and bool(np.all((starts < lines) & (lines < ends)))

    def _have_ids(self, starts: Any, phases: Any, lines: Any) -> bool:
        """Whether each flow has its id on one of *lines*: it must not join one of another trace."""
        np = self._np
        left = np.isin(phases, np.frombuffer(_JOINED, np.uint8))
        left[np.searchsorted(starts, lines) - 1] = False
        return not left.any()

    def _distinct(self, numbers: Any) -> Iterator[tuple[int, Any]]:
        """Yield each number, and where it is; they are few."""
        np = self._np
        left = np.arange(len(numbers))
        for _ in range(_MANY):
            if not len(left):
                return
            first = numbers[left[0]]
            is_it = numbers[left] == first
            yield int(first), left[is_it]
            left = left[~is_it]
        if len(left):
            raise _TooManyError

    def _small_numbers(self, at: Any) -> tuple[Any, Any]:
        """Read the numbers of up to seven digits, each with a comma behind it; say what is none."""
        np = self._np
        words = self._words[at]
        numbers, odd = np.zeros(len(at), np.int64), np.zeros(len(at), bool)
        for word, where in self._distinct(words):
            text, comma, _ = word.to_bytes(8, "little").partition(b",")
            if comma and text.isdigit():
                numbers[where] = int(text)
            else:
                odd[where] = True
        return numbers, odd

    def _times(self, at: Any) -> tuple[Any, Any, Any]:
        """Read times with three decimals as nanoseconds; say how wide each is, and what is odd."""
        np = self._np
        ns, widths = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
        odd = np.ones(len(at), bool)
        left = np.arange(len(at))
        for _ in range(_MANY):
            if not len(left):
                return ns, widths, odd
            first = int(at[left[0]])
            found = _TIME.match(self._text, first)
            if found is None:
                left = left[1:]
                continue
            width = found.end() - first - 1
            is_it, read = microseconds(self._bytes, self._words, at[left], width - len(".000"))
            ns[left[is_it]], widths[left[is_it]], odd[left[is_it]] = read[is_it], width, False
            left = left[~is_it]
        raise _TooManyError

    def _write(self, at: Any, text: Any) -> None:
        """Write at each place a row of *text*, or all of it."""
        np = self._np
        rows = np.lib.stride_tricks.sliding_window_view(self._bytes, text.shape[-1], writeable=True)
        rows[at] = text

    def _write_times(self, lines: Any, widths: Any, ns: Any) -> bool:
        np = self._np
        text, lengths = in_microseconds(ns)
        for length, where in self._distinct(lengths):
            text[where, : WIDEST - length] = ord(" ")
        for width, where in self._distinct(widths):
            room = _HEAD + len('"ts": ') + width
            used = min(WIDEST, room - len('"ts":'))
            if lengths[where].max() > used:
                return False
            row = np.full((len(where), room), ord(" "), np.uint8)
            row[:, :5] = np.frombuffer(b'"ts":', np.uint8)
            row[:, -used:] = text[where, -used:]
            self._write(lines[where], row)
        return True

    def _write_places(self, lines: Any, pids: Any, tids: Any) -> bool:
        np, tracks = self._np, self._to.tracks
        for pid, where in self._distinct(pids):
            room = _HEAD + len('"pid": ') + len(str(pid))
            text = b'"pid":' + str(tracks.number(pid)).encode().rjust(room - len('"pid":'))
            for tid, _ in self._distinct(tids[where]):
                if tracks.thread(pid, tid) != tid:
                    return False
            if len(text) > room:
                return False
            self._write(lines[where], np.frombuffer(text, np.uint8))
        return True

    def _write_ids(self, lines: Any) -> bool:
        """Write a prefix before each id, which must be a number."""
        np = self._np
        if not len(lines):
            return True
        text = np.lib.stride_tricks.sliding_window_view(self._bytes, 14)[
            lines + _HEAD + len('"id": ')
        ]
        widths = np.argmin(text - ord("0") < 10, axis=1)
        after = text[np.arange(len(lines)), widths]
        if not np.all((widths > 0) & ((after == ord(",")) | (after == ord("\n")))):
            return False
        self._write(lines, np.frombuffer(f'"id":{self._to.prefix}'.encode(), np.uint8))
        return True

    def _meet(self, names: Any, starts: Any, ns: Any) -> None:
        """Tell the place of collectives and barriers; few events are any."""
        np = self._np
        if not self._to.wanted:
            return
        first = self._words[names + _HEAD + len('"name": "')] & 0xFFFFFFFF
        is_one = np.isin(first, [_word(word.encode()) for word in FIRST_WORDS])
        at_one = names[is_one][: self._to.wanted]
        events = np.searchsorted(starts, at_one) - 1
        for at, nth in zip(at_one.tolist(), events.tolist(), strict=True):
            end = int(starts[nth + 1]) if nth + 1 < len(starts) else len(self._window)
            found = _SLICE.match(self._window, at + 1, end)
            if found and ns[nth] >= 0:
                end_ns = int(ns[nth]) + round(float(found["us"]) * 1000)
                self._to.met(found["name"].decode(), end_ns)

    def _joined(self, starts: Any, odd: Any) -> bytes | memoryview:
        """Put the moved events together with the odd ones, which are moved by themselves."""
        text = memoryview(self._text)[: len(self._window)]
        if not len(odd):
            return text
        pieces = []
        ends = [*starts[1:].tolist(), len(self._window)]
        done = 0
        for first, last in self._runs(odd.tolist()):
            begin, end = int(starts[first]), ends[last]
            pieces.append(bytes(text[done:begin]))
            pieces.append(moved(self._window[begin:end].strip().strip(b","), self._to))
            done = end
        pieces.append(bytes(text[done:]))
        stripped = (piece.strip().strip(b",") for piece in pieces)
        return b",\n".join(piece for piece in stripped if piece)

    @staticmethod
    def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
        """Yield the first and the last of each run of neighbours."""
        first = last = numbers[0]
        for number in numbers[1:]:
            if number != last + 1:
                yield first, last
                first = number
            last = number
        yield first, last
