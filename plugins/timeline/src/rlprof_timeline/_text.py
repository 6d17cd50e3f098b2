"""A trace file as its head, windows of whole events, and its tail; nothing more is in memory.

What comes out of a window is strict JSON in UTF-8, whatever the file was: one bad event does not
lose the others, a file that was cut gives what came before the cut. Separate because whoever
rewrites events (`_inplace.py`, `_events.py`) can then trust every byte of them.
"""

from __future__ import annotations

import codecs
import re
from contextlib import closing
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
from isal import igzip
from isal.igzip_lib import IsalError

from rlprof.rundir import open_regular
from rlprof_timeline._gzip import unpacked
from rlprof_timeline._lines import decode, encode

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

WINDOW = 2 << 20
"""Of text: what is made of it stays in the caches of a core."""
_LONGEST = 32 << 20
"""A head, an event or a tail beyond this is damage."""
_NEAR_END = 1 << 16
_TRIES = 8
_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_NEXT = re.compile(
    rb'\}\s*,(?=\s*\{\s*"(?:ph|name|cat|pid|tid|ts|tts|dur|args|id|id2|bind_id|s|bp|sf|cname)")'
)
"""Between two events, or between two objects inside one: only reading tells."""
_END = re.compile(rb"\}\s*\](?=\s*(?:[,}]|\Z))")
_RAW = msgspec.json.Decoder(msgspec.Raw)
"""Reads all of a text and keeps nothing: strict, and by far the fastest there is for Python."""


class UnreadableError(Exception):
    """A trace nothing can be shown of, and why."""


class TraceText:
    """One reading of a trace file, from its beginning to its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.head: dict[str, Any] = {}
        """Its top-level members before the events."""
        self.tail: dict[str, Any] = {}
        """Those after them; known when the windows have been read."""
        self.bytes = 0
        """Of its text, so far."""
        self.read = 0
        """Bytes of the file, as it lies there, so far."""
        self.dropped = 0
        """Events that could not be read."""
        self.problems: list[str] = []
        self._left = b""

    def windows(self, longest: int = WINDOW) -> Generator[bytes]:
        """Yield runs of whole events, with commas between them; read the head before."""
        try:
            with open_regular(self._path) as file, closing(unpacked(file)) as stream:
                for window in self._windows(stream, longest):
                    self.read = file.tell()
                    yield window
        except FileNotFoundError:
            raise UnreadableError("is not there") from None
        except OSError as exc:
            why = getattr(exc, "strerror", None) or exc
            raise UnreadableError(f"cannot be read: {why}") from exc

    def _windows(self, stream: BinaryIO, longest: int) -> Iterator[bytes]:
        self._read_head(stream, longest)
        buffer, looked, wanted, more = self._left, 0, longest, True
        while more:
            while more and len(buffer) < wanted:
                chunk = self._read(stream, longest)
                more = bool(chunk)
                buffer += chunk
            if not more:
                break
            found = _last_cut(buffer, looked)
            if found is None or (not found[1] and _is_begun(buffer[: found[0] - 1])):
                # No event ends here: what was found is within one.
                looked, wanted = (len(buffer) if found is None else 0), 2 * len(buffer)
                if len(buffer) > _LONGEST:
                    self.problems.append(f"an event of more than {_LONGEST >> 20} MB was dropped")
                    buffer, looked, wanted = b"", 0, longest
                continue
            wanted = longest
            cut, is_strict = found
            window, buffer, looked = buffer[: cut - 1], buffer[cut:], 0
            if is_strict:
                yield window
                continue
            end = _end_of_events(window)
            if end is None:
                yield from self._mended(window)
            else:
                yield window[: end - 1]
                self._read_tail(window[end:] + b"," + buffer, stream, longest)
                return
        end = _end_of_events(buffer)
        if end is not None:
            if buffer[: end - 1].strip():
                yield buffer[: end - 1]
            self._read_tail(buffer[end:], stream, longest)
            return
        end = _begin_of_tail(buffer)
        if end is not None:
            buffer, rest = buffer[: end - 1], buffer[end:]
            self._read_tail(rest, stream, longest)
        else:
            self._note_cut()
        yield from self._mended(buffer)

    def _read_head(self, stream: BinaryIO, longest: int) -> None:
        text = b""
        while len(text) <= _LONGEST:
            chunk = self._read(stream, longest)
            text = (text + chunk).removeprefix(codecs.BOM_UTF8)
            stripped = text.lstrip()
            if stripped.startswith(b"["):  # Chrome's other form: nothing but the events
                self._left = stripped[1:]
                return
            for found in _KEY.finditer(text):
                head = _object(text[: found.start()] + b'"":0}')
                if head is not None:
                    self.head, self._left = head, text[found.end() :]
                    return
            if not chunk:
                break
        if not text:
            raise UnreadableError(self.problems[0] if self.problems else "is empty")
        if not stripped.startswith(b"{"):
            raise UnreadableError("is no JSON")
        raise UnreadableError("has no traceEvents")

    def _read_tail(self, text: bytes, stream: BinaryIO, longest: int) -> None:
        while len(text) <= _LONGEST and (chunk := self._read(stream, longest)):
            text += chunk
        if not text.strip() and not self.head:
            return
        tail = _object(b'{"":0' + text)
        if tail is not None:
            self.tail = tail
        elif text.strip() not in (b"", b"]"):
            self.problems.append("what follows its events is no JSON")
        else:
            self._note_cut()

    def _read(self, stream: BinaryIO, size: int) -> bytes:
        try:
            chunk = stream.read(size)
        except EOFError:
            self._note_cut()
            return b""
        except (IsalError, igzip.BadGzipFile) as exc:  # type: ignore[misc]
            self.problems.append(f"is damaged: {exc}")
            return b""
        self.bytes += len(chunk)
        return chunk

    def _note_cut(self) -> None:
        if not self.problems:
            self.problems.append("is cut short")

    def _mended(self, window: bytes) -> Iterator[bytes]:
        """Yield what can be read of a window that as a whole is no JSON."""
        pieces = _pieces(window)
        while pieces:
            count = _strict_run(pieces)
            if count:
                yield b",".join(pieces[:count])
                del pieces[:count]
                continue
            for count in range(1, min(_TRIES, len(pieces)) + 1):
                event = _lenient(b",".join(pieces[:count]))
                if event is not None:
                    yield encode(event)
                    break
            else:
                count = 1
                self.dropped += bool(pieces[0].strip())
            del pieces[:count]


def _is_strict(window: bytes) -> bool:
    try:
        _RAW.decode(b"[" + window + b"]")
        return window.isascii() or bool(window.decode())
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False


def _is_begun(window: bytes) -> bool:
    """Whether it is strict JSON as far as it goes."""
    try:
        _RAW.decode(b"[" + window)
    except msgspec.DecodeError as exc:
        return "truncated" in str(exc)
    except RecursionError:
        pass
    return False


def _last_cut(buffer: bytes, looked: int) -> tuple[int, bool] | None:
    """Find the place after the last comma between two events, and whether all before it is well."""
    cuts: list[int] = []
    for begin in (len(buffer) - _NEAR_END, looked - 64):
        cuts = cuts or [found.end() for found in _NEXT.finditer(buffer, max(begin, looked - 64, 0))]
    for cut in cuts[: -_TRIES - 1 : -1]:
        if _is_strict(buffer[: cut - 1]):
            return cut, True
    return (cuts[-1], False) if cuts else None


def _end_of_events(buffer: bytes) -> int | None:
    """Find the place after the bracket that closes the events, if it is there."""
    if buffer.lstrip().startswith(b"]"):
        return buffer.index(b"]") + 1
    for begin in (len(buffer) - _NEAR_END, 0):
        ends = [found.end() for found in _END.finditer(buffer, max(begin, 0))]
        for end in ends[: -_TRIES - 1 : -1]:
            if _is_strict(buffer[: end - 1]):
                return end
    return None


def _begin_of_tail(buffer: bytes) -> int | None:
    """Find the same place by what follows it, where the events before it are not all well."""
    ends = [found.end() for found in _END.finditer(buffer)]
    for end in ends[: -_TRIES - 1 : -1]:
        if _object(b'{"":0' + buffer[end:]) is not None:
            return end
    return None


def _pieces(window: bytes) -> list[bytes]:
    cuts = [found.end() for found in _NEXT.finditer(window)]
    return [
        window[begin : end - 1]
        for begin, end in zip([0, *cuts], [*cuts, len(window) + 1], strict=True)
    ]


def _strict_run(pieces: list[bytes]) -> int:
    """Say how many of the first pieces are strict JSON; by halves, for most are."""
    good, bad = 0, len(pieces) + 1
    step = len(pieces)
    while bad - good > 1:
        step = min(step, bad - good - 1)
        if _is_strict(b",".join(pieces[good : good + step])):
            good += step
        else:
            bad = good + step
        step = max(1, (bad - good) // 2)
    return good


def _lenient(text: bytes) -> dict[str, Any] | None:
    """Read an event that is no strict JSON: with a NaN, a bare line feed, a byte of other text."""
    event = _object(text)
    for key in ("ts", "dur"):
        if event is not None and isinstance(event.get(key), Decimal):
            event[key] = str(event[key])  # with all its digits
    return event


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = decode(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
