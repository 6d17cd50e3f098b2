"""An append-only file of JSON lines with one writer, readable after any crash of that writer."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from rlprof.rundir._regular import MOST, open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_DEEPEST = 50
"""Values nested deeper than this become text where JSON cannot hold them as they are."""


def as_line(record: Mapping[str, Any]) -> bytes:
    """Encode *record* as one line of strict JSON; what JSON cannot hold becomes its text."""
    return as_json(record, separators=(",", ":")).encode("ascii") + b"\n"


def as_json(value: Any, **layout: Any) -> str:
    """Write *value* as strict JSON in ASCII, whatever is in it; *layout* as for `json.dumps`."""
    try:
        text = json.dumps(value, default=_text, allow_nan=False, **layout)
    except (ValueError, TypeError, RecursionError):
        text = ""
    if text and "\\ud" not in text:  # else perhaps half of a surrogate pair
        return text
    return json.dumps(_plain(value), allow_nan=False, **layout)


def _plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Rebuild *value* from what JSON knows: NaN, odd keys, cycles, half characters become text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() < 10_000:  # Python writes no longer ones
        return value
    if isinstance(value, float) and value - value == 0:  # finite
        return value
    if isinstance(value, (dict, list, tuple)) and len(above) < _DEEPEST and id(value) not in above:
        above = (*above, id(value))
        if isinstance(value, dict):
            return {_text(key): _plain(item, above) for key, item in list(value.items())}
        return [_plain(item, above) for item in value]
    return _text(value)


def _text(value: Any) -> str:
    """Say *value* in whole characters, also if it is a stranger's and cannot say itself."""
    try:
        return str(value).encode("utf-8", "backslashreplace").decode()
    except Exception:
        return f"<{type(value).__name__}>"


class Journal:
    """The file; made on the first write, one `write` call for many lines.

    What a full disk refuses stays here, to the byte: the next call goes on where it was cut.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._waiting = bytearray()

    def __len__(self) -> int:
        """How many bytes wait to be written."""
        return len(self._waiting)

    def lines_waiting(self) -> int:
        """How many lines could not be written yet, or not whole."""
        return self._waiting.count(b"\n")

    def write(self, lines: Iterable[bytes]) -> None:
        """Append *lines*; raise OSError if not all of them could be written yet."""
        for line in lines:
            self._waiting += line
        if not self._waiting:
            return
        if self._fd is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        while self._waiting:
            del self._waiting[: os.write(self._fd, self._waiting)]

    def close(self) -> None:
        """Close the file; any number of times."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def read_lines(file: Path, problems: list[str]) -> Iterator[dict[str, Any]]:
    """Read the records of *file*; what is none is skipped and counted into *problems*."""
    cut = long = 0
    try:
        with open_regular(file) as stream:
            for line in iter(partial(stream.readline, MOST), b""):
                if len(line) == MOST and not line.endswith(b"\n"):
                    long += 1
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(MOST)  # noqa: PLW2901 -- the rest of it
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                if isinstance(record, dict):
                    yield record
                else:
                    cut += bool(line.strip())
    except FileNotFoundError:
        return
    except OSError as exc:
        problems.append(f"{file.parent.name}/{file.name}: cannot be read: {exc.strerror or exc}")
    for count, what in ((cut, "cut"), (long, f"oversized (> {MOST >> 20} MiB)")):
        if count:
            lines = "line" if count == 1 else "lines"
            problems.append(f"{file.parent.name}/{file.name}: {count} {what} {lines} skipped")
