"""The layouts of Kineto: finds the numbers of the events in a batch.

An event begins and ends on a separate line, and no value holds a line feed. Most events of a batch
have one of a few shapes. So one of them is read, and all that are like it are found at once: no
event is decoded. Separate from `_inplace.py`, which moves the events found here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rlprof_timeline._decimals import are_numbers, microseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPEN, _CLOSE = b"\n  {", b"\n  }"
_PHASE_AT = len('\n  {\n    "ph": "')
_NEAR_END = 64
"""Lines: within these the last event closes."""
_MOST_LINES = 256
"""Of an event: their count has one byte."""
_BEHIND = bytes(128)
"""Padding, so that no read goes past the end."""
_ORDERS = {
    **dict.fromkeys("stf", "ph id pid tid ts cat name"),
    "X": "ph cat name pid tid ts dur",
    "i": "ph cat s name pid tid ts",
}
"""The members of events that are found here, by phase; an optional one may follow."""
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_EVENT = re.compile(
    rb'\n  \{\n    "ph": "(?P<ph>.)",\s+(?:"id": |"cat": ".*?",\s+(?:"s": "(?P<s>.)",)?)'
    rb'.*?,(?P<pid>\s{1,9})"pid": \d{1,7},(?P<tid>\s{1,9})"tid": \d{1,7},(?P<ts>\s{1,9})"ts": '
    rb'(?P<us>\d{1,16})\.\d{3}(?P<end>,\s{1,9}|(?=\n))(?:"dur": )?',
    re.DOTALL,
)
_LATEST_US = 9_000_000_000_000_000
"""Below it, nanoseconds have 63 bits."""
_LINE = re.compile(rb"\n(    \".*)?")
_PLACES = 0x0706050403020100
"""Times a word with a one in one of its bytes, it has in its first byte how many are behind."""


def _word(text: bytes) -> int:
    """Return *text*, of eight bytes at most, as a number."""
    return int.from_bytes(text, "little")


_SEEN = {_word(f'    "{key}":'.encode()[:8]) for key in ("pid", "tid", "ts", "dur", "id")}
"""The begins of lines that `_fits` looks at anyway."""


class Shape(NamedTuple):
    """What events that are alike have in common."""

    phase: int
    members: tuple[tuple[int, int], ...]
    """The lines that begin with a member: number in the event, and first eight bytes."""
    line: int
    """The line of the time."""
    is_first: bool
    """Whether the time begins its line; else it ends it."""
    gaps: tuple[int, ...]
    """White space before process, thread and time, and behind the time."""
    us: bytes
    """Digits before the point, in one of them."""
    stop: int
    """The character behind the time."""
    second: int
    """The place of the second member in the event."""
    scope: int
    """The place of the scope of a mark in the event; 0: it has none."""


class Alike(NamedTuple):
    """Events of one shape."""

    shape: Shape
    events: Any
    """Their numbers in the batch."""
    begins: Any
    """The white space before their process."""
    pids: Any
    """Their processes, as the last eight bytes of the text."""
    tids: Any
    ns: Any


class Layout:
    """A batch as numbers, and its lines."""

    def __init__(self, batch: bytes) -> None:
        import numpy as np

        self.np: Any = np
        self.text = bytearray().join((batch, _BEHIND))
        """The batch, writable, with padding behind it."""
        self.size = len(batch)
        self.bytes = np.frombuffer(self.text, np.uint8)
        self.words = self.runs("<u8", 8)
        """The eight bytes from any byte on, as one number."""
        self.lines = np.flatnonzero(self.bytes == ord("\n"))
        third, fifth = (self.bytes[n:].take(self.lines, mode="clip") for n in (3, 5))
        self.opens = np.flatnonzero(third == ord("{"))
        """The numbers of the lines with which events open."""
        is_close = third == ord("}")
        last = np.flatnonzero(is_close[-_NEAR_END:])[-1:] + max(0, len(third) - _NEAR_END)
        self.closes = np.append(self.opens[1:] - 1, last)
        self.is_paired = len(self.opens) == np.count_nonzero(is_close) == len(self.closes) > 0
        self.starts = self.lines[self.opens]
        is_member = (fifth == ord('"')).view(np.uint8)
        self.members = np.add.reduceat(is_member, self.opens, dtype=np.uint8)
        """How many lines of each event begin with a member."""

    def runs(self, kind: str, size: int) -> Any:
        """View the text as an overlapping run of *size* bytes from each byte on."""
        return self.np.ndarray((len(self.text) - size + 1,), kind, self.text, strides=(1,))

    def is_known(self) -> bool:
        """Whether there is nothing but events, each right behind the last."""
        if not self.is_paired:
            return False
        ends = self.lines[self.closes]
        is_ours = self.stands(self.starts, _OPEN).all() and self.stands(ends, _CLOSE).all()
        is_ours &= (self.starts[1:] - ends[:-1] == len(_CLOSE) + 1).all()
        others = self.text[: self.starts[0]] + self.text[ends[-1] + len(_CLOSE) : self.size]
        return bool(is_ours) and not others.strip()

    def stands(self, at: Any, text: bytes) -> Any:
        """Say where *text*, of eight bytes at most, is at a place."""
        found, known = self.words[at], self.np.uint64(_word(text))
        if len(text) < 8:
            found &= self.np.uint64((1 << 8 * len(text)) - 1)
        return found == known

    def event(self, number: int) -> bytes:
        """Return the text of an event."""
        return bytes(self.text[self.starts[number] : self.lines[self.closes[number]] + 4])

    def alike(self, most: int) -> Iterator[Alike]:
        """Yield all events whose shape is known; give up after *most* that have no such shape."""
        left = self.np.arange(len(self.opens))
        while len(left) and most:
            shape = shape_of(self.event(left[0]))
            is_it, found = self._fits(shape, left) if shape else (left < 0, None)
            if found and is_it[0]:
                yield found
                left = left[~is_it]
            else:
                left, most = left[1:], most - 1

    def _fits(self, shape: Shape, left: Any) -> tuple[Any, Alike]:
        """Return which of *left* have this shape, and these."""
        np, letters, words = self.np, self.bytes, self.words
        starts = self.starts[left]
        is_it = letters[starts + _PHASE_AT] == shape.phase
        is_it &= self.members[left] == len(shape.members)
        which = np.flatnonzero(is_it)
        left, starts = left[which], starts[which]
        first = self.opens[left]

        def line(number: int) -> Any:
            return self.lines.take(first + number, mode="clip")

        lines = self.closes[left] - first
        ok = (lines > shape.members[-1][0]) & (lines < _MOST_LINES)
        for number, begin in shape.members:
            if begin not in _SEEN:
                ok &= words[line(number) + 1] == begin
        before_pid, before_tid, before_ts, behind = shape.gaps
        width = len(shape.us) + len(".000")
        if shape.is_first:
            at = line(shape.line) + len("\n    ")
        else:
            at = line(shape.line + 1) - len(',"ts": ') - width
        ok &= self.stands(at, b'"ts": ')
        value = at + len('"ts": ')
        are_times, ns = microseconds(letters, words, value, shape.us)
        end = value + width
        ok &= are_times & (letters[end] == shape.stop)
        tids, at, fits = self._number(at - before_ts - 1, b'"tid": ')
        ok &= fits
        pids, at, fits = self._number(at - before_tid - 1, b'"pid": ')
        ok &= fits
        begins = at - before_pid
        ok &= letters[begins - 1] == ord(",")
        second = starts + shape.second
        if shape.phase == ord("X"):
            dur = end + 1 + behind
            ok &= self.stands(second, b'"cat": "') & self.stands(dur, b'"dur": ')
            ok &= are_numbers(words, dur + len('"dur": '), b".")
        elif shape.scope:
            ok &= self.stands(second, b'"cat": "')
            ok &= self.stands(starts + shape.scope, b'"s": "t"')
        else:
            number = second + len('"id": ')
            ok &= self.stands(second, b'"id": ') & are_numbers(words, number, b"0")
            ok &= begins - number < 15  # see `Place.id`
        is_it[which] = ok
        found = Alike(shape, left, begins, pids, tids, ns)
        return is_it, found if ok.all() else Alike(shape, *(one[ok] for one in found[1:]))

    def _number(self, comma: Any, key: bytes) -> tuple[Any, Any, Any]:
        """Find numbers of up to seven digits; return their texts, the places of *key*, if there."""
        words = self.words[comma - 8]
        spaces = (words.view("u1") == ord(" ")).view("<u8")
        digits = (spaces * self.np.uint64(_PLACES) >> self.np.uint64(56)).astype("i8") & 7
        at = comma - digits - len(key)
        fits = self.stands(at, key) & (self.bytes[comma] == ord(","))
        return words, at, fits & (self.bytes[comma - 1] - ord("0") < 10)


def shape_of(event: bytes) -> Shape | None:
    """Learn the shape of an event, if it is one that is known here."""
    found = _EVENT.match(event)
    if found is None:
        return None
    phase = found["ph"].decode("latin-1")
    keys = [*_MEMBERS(event)]
    if " ".join(keys[:7]) != _ORDERS.get(phase) or keys[7:] not in ([], ["args"], ["bp"]):
        return None
    is_odd = int(found["us"]) > _LATEST_US or (phase == "i" and found["s"] != b"t")
    if is_odd or (phase == "X" and not found[0].endswith(b'"dur": ')):
        return None
    lines = [*_LINE.finditer(event)]
    ts = found.end("ts")
    line = event.count(b"\n", 0, ts) - 1
    is_first = lines[line].start() + len("\n    ") == ts
    if not is_first and not found["end"].startswith(b",\n"):
        return None
    return Shape(
        ord(phase),
        tuple((nth, _word(one[1][:8])) for nth, one in enumerate(lines) if one[1]),
        line,
        is_first,
        (*(len(found[key]) for key in ("pid", "tid", "ts")), max(0, len(found["end"]) - 1)),
        found["us"],
        event[found.end("us") + 4],
        event.index(b'"', _PHASE_AT + 2),
        found.start("s") - len('"s": "') if phase == "i" else 0,
    )
