"""The members after the events of a trace, found from the end of its text.

Separate from `_text.py`, which comes there only through all events.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof_traces._members import BLANK, Members, behind
from rlprof_traces._strict import VainError
from rlprof_traces._unpacked import DamagedError, Unpacked
from rlprof_traces._unreadable import opened

if TYPE_CHECKING:
    from pathlib import Path

_NEAR_END = 1 << 16
_CLOSED = re.compile(rb"\](?=\s*[,}])")
"""Behind the last event, or a list in something behind it, or in an event: reading tells."""


def tail_of(path: Path) -> dict[str, Any]:
    """Return the members after the events; empty if there are many, or the file is damaged."""
    with opened(path) as file:
        stream, end = Unpacked(file), b""
        if not stream.is_packed:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _NEAR_END))
        try:
            while chunk := stream.read(_NEAR_END):
                end = (end + chunk)[-_NEAR_END:]
        except (EOFError, DamagedError):
            return {}
    return members_at(end) or {}


def members_at(end: bytes) -> dict[str, Any] | None:
    """Return the members after the events in *end*, the end of a text; None: unknown."""
    for found in _CLOSED.finditer(end):
        members = Members(found.end())
        with suppress(VainError):
            members.read(end)
            if behind(BLANK, end, members.at) == len(end):
                return members.found
    return None
