"""The files of a window: the report, or the raw data that nsys left instead, and our notes.

An empty report proves nothing: nsys creates the file first and writes it later.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

REPORT = "report.nsys-rep"
RAW = "report.qdstrm"
NOTES = "nsys.json"
"""The file in the window's folder from which `export` reads."""
_POLL_S = 0.02
_STILL_S = 0.3
"""A file that has not grown for this long counts as whole, even if nsys does not confirm it."""


@attrs.frozen
class Found:
    """The file of a window, and its fault."""

    file: str = ""
    """`report.nsys-rep`, or `report.qdstrm` if nsys found no importer; empty: no file."""
    why: str = ""
    """Why it is not a whole report; empty: it is whole."""


def await_report(folder: Path, *, is_done: bool, within_s: float) -> Found:
    """Wait for the report in *folder*; *is_done*: nsys ended with success."""
    end = time.monotonic() + within_s
    report, raw = folder / REPORT, folder / RAW
    size, since = -1, time.monotonic()
    while True:
        now = time.monotonic()
        there = _size(report)
        if there != size:
            size, since = there, now
        if size > 0 and (is_done or now - since >= _STILL_S):
            return Found(REPORT)
        if size <= 0 and is_done and _size(raw) > 0:
            return Found(RAW)
        if now >= end or (is_done and size < 0 and now - since >= _STILL_S):
            break
        time.sleep(_POLL_S)
    if size == 0:
        return Found(REPORT, "the report is empty: nsys did not write it in time")
    return Found(why="nsys left no report")


def write_notes(file: Path, notes: Mapping[str, Any]) -> None:
    """Write *notes* atomically, because other processes read it."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(json.dumps(notes), encoding="utf-8")
    part.replace(file)


def read_notes(file: Path) -> dict[str, Any]:
    """Read the notes in *file*; empty if there are none."""
    try:
        notes = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1
