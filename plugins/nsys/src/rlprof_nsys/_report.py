"""Waits for a window's report until it is whole, or for the raw data that nsys left instead.

An empty report proves nothing: nsys creates the file first and writes it later.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from pathlib import Path

REPORT = "report.nsys-rep"
RAW = "report.qdstrm"
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


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1
