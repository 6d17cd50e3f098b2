"""Reads a text of events that is not valid JSON as a whole: event by event.

Separate because it is slow, and meant for the few batches of a file that are damaged or end where
the file was cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal

import attrs

from rlprof_traces._lines import encode
from rlprof_traces._members import BLANK, SEPARATOR, Members, as_utf8, behind, lenient
from rlprof_traces._strict import CutError, NoJsonError, VainError, end_of_value, is_strict

KEYS = rb'"(?:ph|name|cat|pid|tid|ts|tts|dur|args|id|id2|bind_id|s|bp|sf|cname)"'
"""One of them stands first in an event."""
_HEAD = rb"(?=\{\s*" + KEYS + rb'\s*:\s*["\[{\dtfnNI-])'
BEGIN = re.compile(rb"[\s,}\]]" + _HEAD)
# One set of characters first: so it is ten times as fast.
_NEXT = re.compile(rb"[\s,}\]](?:" + _HEAD + rb'|(?P<end>(?<=\])(?=\s*(?:,\s*"|\}\s*\Z))))')
"""Where to go on behind damage: before an event, or at the end of all of them."""
_EVENT = re.compile(rb'\{\s*"ph"')
_END = re.compile(rb"\]\s*(?:(,\s*\"|\})|\Z)")
_EXACT = json.JSONDecoder(strict=False, parse_constant=str, parse_float=Decimal)
_KEPT = 256
"""Bytes of damage that are read again with the text after them."""
_LEAST, _MOST = 1 << 8, 1 << 18
"""Bytes of undamaged events that are read at once."""


Repair = Callable[[bytes, int], tuple[bytes, int] | None]
"""Returns the event that was meant at a place of a text, and where it ends; None: unknown."""


@attrs.define
class Salvage:
    """The result for *text*, which begins at an event or, if *is_lost*, in the middle of damage.

    Unless it *is_all* there is, an event that is begun stays for the next time; one of more than
    *longest* bytes is damage.
    """

    text: bytes
    is_all: bool
    longest: int
    repair: Repair | None = None
    is_lost: bool = False
    """Whether there is damage at `at`."""
    at: int = 0
    """The text before it is done."""
    events: list[bytes] = attrs.field(factory=list)
    """Runs of events with commas between them, in strict JSON."""
    dropped: int = 0
    repaired: int = 0
    is_end: bool = False
    """Whether the bracket that closes the events stands right before `at`."""
    _run: int = _LEAST
    _is_inside: bool = False
    """Whether the text at this place may be part of a damaged event."""
    _is_begun: bool = False
    """Whether the damage is an event without an end: brackets behind it may be its own."""

    def read(self) -> Salvage:
        """Read as much as there is."""
        self._is_inside = self.is_lost
        while not self.is_end:
            if self.is_lost:
                goes_on = self._go_behind_damage()
            else:
                self.at = behind(SEPARATOR, self.text, self.at)
                goes_on = self.at < len(self.text) and self._read_one()
            if not goes_on:
                break
        return self

    def _read_one(self) -> bool:
        """Read the text at `at`; return False if that needs more text."""
        text, at = self.text, self.at
        if text[at] == ord("]") and self._is_inside:
            self.is_lost = True
            return True
        if text[at] == ord("]") and (found := _END.match(text, at)):
            if found[1] or not self._may_wait():
                self.at, self.is_end = at + 1, True
            return self.is_end
        if not self._is_inside and self._read_run():
            return True
        try:
            if text[at] != ord("{"):
                raise NoJsonError("no object")
            event, self.at = self._event(at)
        except VainError as exc:
            self._is_begun = isinstance(exc, CutError)
            if self._is_begun and self._may_wait():
                return False
            self._damage()
        else:
            self._take(event)
        return True

    def _read_run(self) -> bool:
        """Read many events at once, as long as that goes well."""
        end = self.text.rfind(b"},", self.at, self.at + self._run) + 1
        run = self.text[self.at : end]
        if not run or not is_strict(b"[" + run + b"]"):
            self._run = max(_LEAST, self._run >> 4)
            return False
        self._run = min(_MOST, self._run << 1)
        self.events.append(run)
        self.at = end
        return True

    def _event(self, at: int) -> tuple[bytes, int]:
        """Read the event at *at*; return it in strict JSON, and the place of the text after it."""
        try:
            end = end_of_value(self.text, at)
        except NoJsonError as exc:
            fixed = self.repair(self.text, at) if self.repair else None
            if fixed is not None:
                self.repaired += 1
                return fixed
            if not exc.is_odd:
                raise
            event, end = lenient(self.text, at, _EXACT)
            for key in ("ts", "dur"):
                if isinstance(event.get(key), Decimal):
                    event[key] = str(event[key])  # with all its digits
            return encode(event), end
        return as_utf8(self.text[at:end]), end

    def _take(self, event: bytes) -> None:
        if self._is_inside and b'"ph"' not in event:
            return
        self._is_inside = self._is_begun = False
        self.events.append(event)

    def _may_wait(self) -> bool:
        return not self.is_all and len(self.text) - self.at <= self.longest

    def _damage(self) -> None:
        self.dropped += not self._is_inside or bool(_EVENT.match(self.text, self.at))
        self.is_lost = self._is_inside = True
        self.at += 1

    def _go_behind_damage(self) -> bool:
        """Find where to continue; return False if that needs more text."""
        found = _NEXT.search(self.text, self.at)
        if found is None:
            size = len(self.text)
            self.at = size if self.is_all else max(self.at, size - _KEPT)
            return False
        self.at = found.end()
        if found["end"] is None:
            self.is_lost = False
            return True
        is_end = self._is_end()
        if is_end is None:
            self.at -= 1
            return False
        self.is_end = is_end
        return True

    def _is_end(self) -> bool | None:
        """Whether all that stands behind a bracket in damage is members; None: not yet known."""
        if self._is_begun:
            return False
        members = Members(self.at)
        try:
            members.read(self.text)
        except CutError:
            return None if self._may_wait() else self.is_all
        except NoJsonError:
            return False
        if behind(BLANK, self.text, members.at) < len(self.text):
            return False
        return True if self.is_all else None
