"""A trace file as its head, batches of whole events, and its tail; nothing more is in memory.

A batch yields strict JSON in UTF-8 from any file: one bad event does not lose the others, and a
file that was cut gives all that came before the cut. So the modules that rewrite events
(`_inplace.py`, `_events.py`) can trust every byte.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any

from rlprof_traces._members import BLANK, Members, as_utf8, behind
from rlprof_traces._salvage import BEGIN, KEYS, Salvage
from rlprof_traces._strict import CutError, NoJsonError, VainError, end_of_value, is_strict
from rlprof_traces._unpacked import DamagedError, Unpacked
from rlprof_traces._unreadable import UnreadableError, opened

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from rlprof_traces._salvage import Repair

_BATCH = 2 << 20
"""Of text: what is made of it stays in the caches of a core."""
_LONGEST = 32 << 20
"""A head, an event or a tail beyond this is damage."""
_NEAR_END = 1 << 12, 1 << 16
"""Of a batch: here its last event ends, but for a large one."""
_TRIES = 8
"""Places to cut a batch: each costs a reading of it."""
_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_NEXT = re.compile(rb"\}\s*,(?=\s*\{\s*" + KEYS + rb")")
"""Between two events, or between two objects inside one: only reading tells."""
_ANEW = re.compile(rb"(?:[\]\s]*\}[\]}\s]*|\s*)(?:\Z|\[\s*\{|\{\s*(?!" + KEYS + rb')")')
"""The end of a text, or another one; other damage may be followed by events."""


class TraceText:
    """One reading of a trace file, from its beginning to its end."""

    def __init__(self, path: Path, repair: Repair | None = None) -> None:
        """Read *path*; *repair* gets the text of an event that is no JSON, and its place there."""
        self._path = path
        self._repair = repair
        self.head: dict[str, Any] = {}
        """Its top-level members before the events."""
        self.tail: dict[str, Any] = {}
        """Those after them; known when the batches have been read."""
        self.dropped = 0
        """Events that could not be read."""
        self.repaired = 0
        """Events that *repair* has repaired."""
        self.problems: list[str] = []
        self._left = b""
        self._is_list = False
        """Whether there is nothing but the events: Chrome's other form."""
        self._is_over = False

    def batches(self, longest: int = _BATCH) -> Generator[bytes]:
        """Yield runs of whole events, with commas between them; read the head before."""
        with opened(self._path) as file:
            yield from self._batches(Unpacked(file), longest)

    def _batches(self, stream: Unpacked, longest: int) -> Iterator[bytes]:
        self._read_head(stream, longest)
        buffer, looked, wanted, is_lost, more = self._left, 0, longest, False, True
        self._left = b""
        while more:
            if (size := len(buffer)) < wanted:
                buffer = self._read(stream, wanted - size, buffer)
                more = len(buffer) > size
                if more and len(buffer) < wanted:
                    continue
            if more and not is_lost and (cut := _last_cut(buffer, looked)):
                yield buffer[: cut - 1]
                buffer, looked, wanted = buffer[cut:], 0, longest
                continue
            end = None if is_lost else _end_of_events(buffer)
            if end is not None:
                batch = buffer[: end - 1]
                if batch.strip():
                    yield as_utf8(batch)
                buffer = buffer[end:]
            else:
                found = Salvage(buffer, not more, _LONGEST, self._repair, is_lost).read()
                self.dropped += found.dropped
                self.repaired += found.repaired
                if found.events:
                    yield b",".join(found.events)
                buffer, is_lost = buffer[found.at :], found.is_lost
                if not found.is_end:  # what is left goes on beyond the buffer
                    looked, wanted = len(buffer), max(longest, 2 * len(buffer))
                    continue
            buffer = self._read_tail(buffer, stream)
            if not buffer:
                return
            more = is_lost = True
        self._note_cut()

    def _read_head(self, stream: Unpacked, longest: int) -> None:
        text = self._read(stream, longest).removeprefix(codecs.BOM_UTF8)
        if not text:
            raise UnreadableError(self.problems[0] if self.problems else "is empty")
        members, at = None, None
        while at is None and len(text) <= _LONGEST:
            start = behind(BLANK, text, 0)
            if text[start : start + 1] == b"[":
                at, self._is_list = start, True
            elif text[start : start + 1] == b"{":
                members = members or Members(start + 1)
                at = self._begin_of_events(members, text)
            elif start < len(text):
                raise UnreadableError("is no JSON")
            if at is None:
                chunk = self._read(stream, max(longest, len(text)))
                if not chunk:
                    break
                text += chunk
        if at is None:
            raise UnreadableError(
                self.problems[0] if self.problems else "is no JSON" if members is None
                else "has no traceEvents" if len(text) > _LONGEST or members.is_broken
                else "is cut short"
            )  # fmt: skip
        self.head = members.found if members else {}
        self._left = text[at + 1 :]

    def _begin_of_events(self, members: Members, text: bytes) -> int | None:
        """Return the place of the bracket that opens the events; None: not in *text*."""
        try:
            if members.read(text, "traceEvents"):
                return members.at
        except CutError:
            return None
        except NoJsonError:
            found = _KEY.search(text, members.at)
            if found is None:
                return None
            self.problems.append("what stands before its events is no JSON")
            return found.end() - 1
        raise UnreadableError("has no traceEvents")

    def _read_tail(self, text: bytes, stream: Unpacked) -> bytes:
        """Read the text after the bracket; return it if it is damage with events after it."""
        text = self._read(stream, _LONGEST, text)
        members = Members(0)
        try:
            if not self._is_list:
                members.read(text)
        except CutError:
            self._note_cut()
            members.at = len(text)
        except NoJsonError:  # and `members` say so
            pass
        if members.is_broken or behind(BLANK, text, members.at) < len(text):
            if not _ANEW.match(text) and BEGIN.search(text):
                self.dropped += 1
                return text
            self.problems.append("what follows its events is no JSON")
        if "traceEvents" in members.found:
            self.problems.append("has traceEvents twice: the second of them dropped")
        self.tail = members.found
        return b""

    def _read(self, stream: Unpacked, size: int, before: bytes = b"") -> bytes:
        """Read *size* bytes, or as many as there are, behind those *before*."""
        chunks = [before]
        while size > 0 and not self._is_over:
            try:
                chunk = stream.read(size)
            except EOFError:
                self._note_cut()
                chunk = b""
            except DamagedError as exc:
                self.problems.append(f"is damaged: {exc}")
                chunk = b""
            self._is_over = not chunk
            size -= len(chunk)
            chunks.append(chunk)
        return b"".join(chunks)

    def _note_cut(self) -> None:
        if not self.problems:
            self.problems.append("is cut short")


def _last_cut(buffer: bytes, looked: int) -> int | None:
    """Find the place after the last comma between two events, if all before it is well."""
    cuts: list[int] = []
    for begin in (*(len(buffer) - near for near in _NEAR_END), looked - 64):
        cuts = cuts or [found.end() for found in _NEXT.finditer(buffer, max(begin, looked - 64, 0))]
    for cut in cuts[: -_TRIES - 1 : -1]:
        if is_strict(b"".join((b"[", memoryview(buffer)[: cut - 1], b"]"))):
            return cut
    return None


def _end_of_events(buffer: bytes) -> int | None:
    """Find the place after the bracket that closes the events, if all before it is well."""
    text = b"[" + buffer
    try:
        end = end_of_value(text, 0)
    except VainError:
        return None
    return text.rindex(b"]", 0, end)
