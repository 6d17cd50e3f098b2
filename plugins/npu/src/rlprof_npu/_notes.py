"""What a window has noted of itself, read again: with all that is needed, or not at all."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_npu._raw import NOTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FARTHEST_NS = 1 << 63
"""No clock is there before the year 2262."""


def read_notes(folder: Path) -> dict[str, Any]:
    """Read the notes in *folder*; raise CaptureError where they are not as they were written."""
    file = folder / NOTES
    notes = None
    if file.is_file():  # to read a FIFO is to wait for ever
        with suppress(OSError, ValueError, RecursionError):
            notes = json.loads(file.read_bytes())
    if not isinstance(notes, dict) or "clock" not in notes:
        raise CaptureError("the notes of this window cannot be read, so its raw data cannot either")
    damaged = [name for name, is_good in _ALWAYS.items() if not is_good(notes.get(name))]
    damaged += [n for n, is_good in _LATER.items() if n in notes and not is_good(notes[n])]
    if damaged:
        raise CaptureError(
            f"the notes of this window are damaged ({', '.join(damaged)}), so its raw data cannot "
            "be read"
        )
    return notes


def _is_whole(found: Any) -> bool:
    return type(found) is int and 0 <= found < _FARTHEST_NS


def _is_pair(found: Any) -> bool:
    return isinstance(found, list) and len(found) == 2 and all(map(_is_whole, found))


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(one, str) for one in found)


def _is_applied(found: Any) -> bool:
    return isinstance(found, dict) and _are_texts(found.get("activities"))


def _is_config(found: Any) -> bool:
    return isinstance(found, dict) and _is_applied(found.get("common_config"))


def _is_time(found: Any) -> bool:
    return type(found) in (int, float) and 0 < found <= threading.TIMEOUT_MAX


_ALWAYS: dict[str, Callable[[Any], bool]] = {
    "rank": _is_whole,
    "applied": _is_applied,
    "marks": lambda found: isinstance(found, list) and all(map(_is_pair, found)),
    "analysis": lambda found: isinstance(found, str),
    "timeout_s": _is_time,
    "export_type": _are_texts,
    "clock": _is_pair,
}
_LATER: dict[str, Callable[[Any], bool]] = {
    "config": _is_config,
    "start_info": lambda found: isinstance(found, dict),
    "missing": _are_texts,
    "said": _are_texts,
    "end": _is_pair,
    "sizes": lambda found: isinstance(found, dict) and all(map(_is_whole, found.values())),
}
"""What a window that was killed has not come to."""
