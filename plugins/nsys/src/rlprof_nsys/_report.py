"""Waits for a window's report until it is whole, or imports the raw data that nsys left instead.

An empty report proves nothing: nsys creates the file first and writes it later.
"""

from __future__ import annotations

import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rlprof_nsys._program import Program

REPORT = "report.nsys-rep"
RAW = "report.qdstrm"
NO_IMPORTER = (
    "nsys has no importer, so it left raw data (.qdstrm); install all of Nsight Systems, or link "
    "its folder host-linux-x64 next to target-linux-x64"
)
_GENERATED = re.compile(r"^\s*(/.*\.(?:nsys-rep|qdstrm))\s*$", re.MULTILINE)
_POLL_S = 0.02
_STILL_S = 0.3
"""A file that has not grown for this long counts as whole, even if nsys does not confirm it."""
_IMPORT_S = 60.0


@attrs.frozen
class Found:
    """The file of a window, and its fault."""

    file: str = ""
    """`report.nsys-rep` or `report.qdstrm`; empty: no file."""
    why: str = ""
    """Why it is not a whole report; empty: it is whole."""


def await_report(
    program: Program, folder: Path, *, said: str, is_done: bool, within_s: float
) -> Found:
    """Wait for the report in *folder*.

    *said* is the output of nsys; *is_done*: nsys ended with success. If nsys wrote the report
    elsewhere because a folder was missing, move it here.
    """
    end = time.monotonic() + within_s
    for line in _GENERATED.findall(said):
        _fetch(Path(line), folder)
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
            return _import(program, raw, report)
        if now >= end or (is_done and size < 0 and now - since >= _STILL_S):
            break
        time.sleep(_POLL_S)
    if size == 0:
        return Found(REPORT, "the report is empty: nsys did not write it in time")
    return Found(why="nsys left no report")


def _import(program: Program, raw: Path, report: Path) -> Found:
    from rlprof_nsys._program import run

    importer = program.importer
    if not importer:
        return Found(raw.name, NO_IMPORTER)
    said = run([importer, "-i", str(raw), "-o", str(report)], timeout_s=_IMPORT_S)
    if said.code == 0 and _size(report) > 0:
        raw.unlink()
        return Found(REPORT)
    return Found(raw.name, f"nsys' raw data cannot be imported: {said.sentence}")


def _fetch(file: Path, folder: Path) -> None:
    target = folder / (REPORT if file.suffix == ".nsys-rep" else RAW)
    if file != target and file.is_file() and not target.exists():
        with suppress(OSError):
            shutil.move(file, target)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1
