"""What becomes of a report: the file itself, a trace on the wall clock, and tables of nsys stats.

The report is handed on whatever happens; what could not be made of it is in a note, and the capture
then partial, so that its raw data stay.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError
from rlprof_nsys._convert import ConversionError, imported, program_of, tables_of, to_sqlite
from rlprof_nsys._notes import NOTES, read_notes
from rlprof_nsys._shared import give_late, given, is_alive, joined, link
from rlprof_nsys._sqlite import Share, UnreadableError
from rlprof_nsys._trace import write_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Capture
    from rlprof_nsys._program import Program

_REPORT, _RAW, _DATABASE = "report.nsys-rep", "report.qdstrm", "report.sqlite"
_GIVEN_S, _POLL_S, _STILL_S = 60.0, 0.05, 0.3
"""How long the process that has begun a shared window may take to end it after this one."""
_LEFT_S = 5.0
"""How long the launcher may take to have nsys write the report of a process that was killed."""
_EARLY_S = 1.0
"""Processes that hear of an end one after another may be this many seconds apart."""
_HOLDS_ALL = (
    "the report holds environment variables of all processes that nsys could look at, in plain "
    "text; look before you pass it on"
)
_NO_NSYS = (
    "no trace: there is no nsys on this host to read the report with; put it on PATH, and export "
    "again"
)


def exported(capture: Capture, folder: Path, out: Path) -> list[Artifact]:
    """Hand on the report in *folder*, and what can be made of it here."""
    folder, out = folder.absolute(), out.absolute()  # nsys is called in another
    notes: Mapping[str, Any] = read_notes(folder / NOTES)
    if notes.get("joined"):
        notes = _with_what_was_given(notes, folder, capture)
    with tempfile.TemporaryDirectory(prefix=".nsys.", dir=out) as tmp:
        return _Export(capture, folder, out, notes, Path(tmp)).artifacts()


@attrs.frozen
class _Export:
    """One export: from where, to where, and a folder for what is in between."""

    capture: Capture
    folder: Path
    out: Path
    notes: Mapping[str, Any]
    tmp: Path

    def artifacts(self) -> list[Artifact]:
        """Make what can be made, the trace first."""
        file = self._recorded()
        why = str(self.notes.get("why") or "")
        size = self.notes.get("bytes")
        if not why and not self.notes.get("whole"):
            why = "nothing shows that the report is whole"
        elif not why and file.name == _REPORT and size not in (None, file.stat().st_size):
            why = f"the report has {file.stat().st_size} bytes; {size} were written"
        if not self.notes.get("joined"):
            late = f"{self.capture.target} began the window and did not pass its report on"
            said = "; ".join(filter(None, (late, why)))
            give_late(self.folder, file.name, said, file.stat().st_mtime_ns)
        program = program_of(self.notes, self.tmp)
        try:
            report, database = self._opened(program, file)
            trace = self._trace(database, why)
        except (ConversionError, UnreadableError) as exc:
            return [self._handed_on(file, "; ".join(filter(None, (why, str(exc)))))]
        if self.notes.get("joined"):
            elsewhere = f"its report is one with that of {self.notes['joined']['who']}"
            return [attrs.evolve(trace, note=trace.note or elsewhere)]
        tables: list[Path] = []
        lack = "no tables: there is no nsys on this host"
        if program is not None:
            tables, lack = tables_of(program, database, self.out, self.capture.stem)
        made = [trace, self._handed_on(report, why, said=lack)]
        return made + [Artifact(one.name, kind="files", format="csv") for one in tables]

    def _recorded(self) -> Path:
        """Return what was recorded: a report before its raw data, and whatever is not empty."""
        there = [self.folder / name for name in (_REPORT, _RAW, _DATABASE)]
        if len(self.notes.get("wall") or ()) == 1:  # it was never stopped
            _await_any(there)
        for file in there:
            if file.is_file() and file.stat().st_size:
                return file
        if any(file.is_file() for file in there):
            raise CaptureError("nsys left an empty report: it was cut off before it wrote it")
        raise CaptureError(str(self.notes.get("why") or "nsys left no report"))

    def _opened(self, program: Program | None, file: Path) -> tuple[Path, Path]:
        """Return the report and its SQLite."""
        if file.name == _DATABASE:
            return file, file
        made = self.folder / _DATABASE
        if program is None:
            if made.is_file() and made.stat().st_size:
                return file, made
            raise ConversionError(_NO_NSYS)
        report = file
        if file.name == _RAW:
            report = self.tmp / _REPORT
            imported(program, file, report)
        database = self.tmp / _DATABASE
        to_sqlite(program, report, database)
        return report, database

    def _trace(self, database: Path, why: str) -> Artifact:
        capture = self.capture
        name = f"{capture.stem}.trace.json.gz"
        about = {**capture.header, "nsys": str(self.notes.get("version") or "")}
        try:
            written = write_trace(database, self.out / name, about, self._share())
        except UnreadableError as exc:
            raise UnreadableError(f"no trace: the report's SQLite {exc}") from exc
        spans = self.notes.get("spans")
        if not why and isinstance(spans, int) and written.ranges < spans:
            why = f"{spans - written.ranges} of {spans} phases are no ranges in the report"
        return Artifact(
            name,
            kind="trace",
            format="chrome-trace",
            status="partial" if why else "whole",
            note=why,
            events=written.events,
            text_size=written.text_size,
        )

    def _share(self) -> Share:
        """Choose of a report that several processes share what is this one's."""
        if self.notes.get("joined"):
            return Share(only=self.capture.pid)
        return Share(without=frozenset(joined(self.folder)))

    def _handed_on(self, file: Path, why: str, said: str = "") -> Artifact:
        """Put the report where artifacts are: the same file on one disk, else a copy."""
        target = self.out / f"{self.capture.stem}{file.suffix}"
        target.unlink(missing_ok=True)
        try:
            os.link(file, target)
        except OSError:
            shutil.copyfile(file, target)
        told = _HOLDS_ALL if "env" in self.notes else ""
        note = "; ".join(filter(None, (why, said, told)))
        return Artifact(
            target.name,
            kind="files",
            format=file.suffix.removeprefix("."),
            status="partial" if why else "whole",
            note=note,
        )


def _with_what_was_given(
    notes: Mapping[str, Any], folder: Path, capture: Capture
) -> Mapping[str, Any]:
    """Add to *notes* what was said of the report by the process that has ended the window."""
    who, pid = notes["joined"]["who"], notes["joined"]["pid"]
    end = time.monotonic() + _GIVEN_S
    while (said := given(folder)) is None and is_alive(pid) and time.monotonic() < end:
        time.sleep(_POLL_S)
    if said is None:
        said = _taken(notes, folder, capture)
    if said is None:
        raise CaptureError(
            f"the window is in the report of {who} (process {pid}), which has not ended it"
        )
    why = str(notes.get("why") or said["why"])
    stopped_ns = notes["wall"][-1][0]
    early_s = (stopped_ns - said["ended_ns"]) / 1e9
    if not why and early_s > _EARLY_S:
        why = f"{who} began the window, and ended it {early_s:.1f} s before this process did"
    return {**notes, "why": why, "whole": not why}


def _taken(notes: Mapping[str, Any], folder: Path, capture: Capture) -> Mapping[str, Any] | None:
    """Take the report from the folder of a dead process that began the window; None: no report."""
    theirs = Path(notes["joined"].get("folder") or "/nowhere")
    if capture.pid not in joined(theirs):
        return None
    report, end = theirs / _REPORT, time.monotonic() + _LEFT_S
    before, size = -1, _size(report)
    while (said := given(folder)) is None and (size <= 0 or size != before):
        if time.monotonic() >= end:
            return None
        time.sleep(_STILL_S)
        before, size = size, _size(report)
    if said is not None:
        return said
    link(report, folder / _REPORT)
    why = f"{notes['joined']['who']} began the window, and died before its end"
    return {"file": _REPORT, "why": why, "ended_ns": report.stat().st_mtime_ns}


def _await_any(files: list[Path]) -> None:
    """Wait for one of *files* to be there and grow no more: nsys may be writing it just now."""
    end, before = time.monotonic() + _LEFT_S, [-1]
    while (sizes := [_size(file) for file in files]) != before or max(sizes) <= 0:
        if time.monotonic() >= end:
            return
        time.sleep(_STILL_S)
        before = sizes


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() and not file.is_symlink() else -1
