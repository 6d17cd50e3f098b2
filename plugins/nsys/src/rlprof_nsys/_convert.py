"""Conversions by nsys: raw data to a report, and a report to SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_nsys._program import Outcome, Program, find_nsys, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LEAST_S, _PER_MB_S = 60.0, 10.0
"""A report of 11 MB took 19 s to import and 4 s to export on a busy machine."""


_NO_IMPORTER = (
    "nsys has no importer, so it left raw data (.qdstrm); install all of Nsight Systems, or link "
    "its folder host-linux-x64 next to target-linux-x64"
)


class ConversionError(Exception):
    """nsys could not write the file."""


def program_of(notes: Mapping[str, object], tmp: Path) -> Program | None:
    """Find the nsys that recorded, or another one; None: this host has no nsys."""
    asked = notes.get("nsys")
    path = (find_nsys(asked) if isinstance(asked, str) and asked else "") or find_nsys("nsys")
    return Program(path, str(tmp)) if path else None


def imported(program: Program, raw: Path, report: Path) -> None:
    """Convert the raw data of an interrupted nsys into *report*."""
    if not program.importer:
        raise ConversionError(_NO_IMPORTER)
    argv = [program.importer, "-i", str(raw), "-o", str(report)]
    outcome = run(argv, timeout_s=_within_s(raw), folder=program.folder)
    _see_that_it_is_there("nsys' importer", outcome, report)


def to_sqlite(program: Program, report: Path, database: Path) -> None:
    """Convert *report* into *database*."""
    argv = ["export", "--type=sqlite", "--quiet=true", "--force-overwrite=true"]
    within_s = _within_s(report)
    outcome = program.call(*argv, f"--output={database}", str(report), timeout_s=within_s)
    _see_that_it_is_there("nsys export", outcome, database)


def _within_s(file: Path) -> float:
    return _LEAST_S + file.stat().st_size / 1e6 * _PER_MB_S


def _see_that_it_is_there(who: str, outcome: Outcome, made: Path) -> None:
    if outcome.code != 0 or not made.is_file():
        late = "did not finish in time: " if outcome.code is None else ""
        raise ConversionError(f"{who}: {late}{outcome.sentence}")
