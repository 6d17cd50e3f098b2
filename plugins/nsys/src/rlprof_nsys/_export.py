"""Exports a report: the report itself, and a trace on the wall clock.

The report is always exported. If the trace cannot be made, a note gives the reason and the capture
is partial, so its raw data are kept.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError
from rlprof_nsys._processes import is_alive
from rlprof_nsys._program import ConversionError, imported, program_of, to_sqlite
from rlprof_nsys._report import NOTES, RAW, REPORT, await_report, read_notes
from rlprof_nsys._shared import GIVEN, joined, link
from rlprof_nsys._sqlite import Share, UnreadableError
from rlprof_nsys._trace import write_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Capture

_GIVEN_S, _POLL_S = 60.0, 0.05
"""How long the process that opened a shared window may take to close it after this process."""
_LEFT_S = 5.0
"""How long the launcher and nsys may take to write the report of a killed process."""
_EARLY_S = 1.0
"""Processes close a shared window one after another, and may be this many seconds apart."""
_HOLDS_ALL = (
    "the report holds environment variables of all processes that nsys could read, in plain "
    "text; check it before you share it"
)
_NO_NSYS = (
    "no trace: there is no nsys on this host to read the report; put nsys on PATH and export again"
)


def exported(capture: Capture, folder: Path, out: Path) -> list[Artifact]:
    """Export the report in *folder*, and all that this host can make from it."""
    folder, out = folder.absolute(), out.absolute()  # nsys runs in another folder
    notes: Mapping[str, Any] = read_notes(folder / NOTES)
    if notes.get("joined"):
        notes = _with_what_was_given(notes, folder)
    with tempfile.TemporaryDirectory(prefix=".nsys.", dir=out) as tmp:
        return _Export(capture, folder, out, notes, Path(tmp)).artifacts()


@attrs.frozen
class _Export:
    """One export: its source, its destination, and a folder for temporary files."""

    capture: Capture
    folder: Path
    out: Path
    notes: Mapping[str, Any]
    tmp: Path

    def artifacts(self) -> list[Artifact]:
        """Make all artifacts that are possible, the trace first."""
        file = self._recorded()
        why = str(self.notes.get("why") or "")
        size = self.notes.get("bytes")
        if not why and not self.notes.get("whole"):
            why = "nothing shows that the report is whole"
        elif not why and file.name == REPORT and size not in (None, file.stat().st_size):
            why = f"the report has {file.stat().st_size} bytes; {size} were written"
        try:
            report, database = self._opened(file)
            trace = self._trace(database, why)
        except (ConversionError, UnreadableError) as exc:
            return [self._handed_on(file, "; ".join(filter(None, (why, str(exc)))))]
        if self.notes.get("joined"):
            elsewhere = f"it shares the report of {self.notes['joined']['who']}"
            return [attrs.evolve(trace, note=trace.note or elsewhere)]
        return [trace, self._handed_on(report, why)]

    def _recorded(self) -> Path:
        """Return the first file that is not empty: the report, else its raw data."""
        there = [self.folder / name for name in (REPORT, RAW)]
        if len(self.notes.get("wall") or ()) == 1:  # the window was never closed
            await_report(self.folder, is_done=False, within_s=_LEFT_S)
        for file in there:
            if file.is_file() and file.stat().st_size:
                return file
        if any(file.is_file() for file in there):
            raise CaptureError("nsys left an empty report: nsys ended before it wrote the data")
        raise CaptureError(str(self.notes.get("why") or "nsys left no report"))

    def _opened(self, file: Path) -> tuple[Path, Path]:
        """Return the report and its SQLite file."""
        program = program_of(self.notes, self.tmp)
        if program is None:
            raise ConversionError(_NO_NSYS)
        report = file
        if file.name == RAW:
            report = self.tmp / REPORT
            imported(program, file, report)
        database = self.tmp / "report.sqlite"
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
        spans = self.notes.get("spans") or 0
        lost = ""
        if written.ranges < spans:
            lost = f"{spans - written.ranges} of {spans} phases have no range in the report"
            why = why or ("" if self.notes.get("self_test") else lost)  # else it is `unsupported`
        return Artifact(
            name,
            kind="trace",
            format="chrome-trace",
            status="partial" if why else "whole",
            note=why or lost,
            events=written.events,
            text_size=written.text_size,
        )

    def _share(self) -> Share:
        """Return which events of a shared report belong to this process."""
        if self.notes.get("joined"):
            return Share(only=self.capture.pid)
        return Share(without=frozenset(joined(self.folder)))

    def _handed_on(self, file: Path, why: str) -> Artifact:
        """Put the report among the artifacts: a hard link on the same disk, else a copy."""
        target = self.out / f"{self.capture.stem}{file.suffix}"
        link(file, target)
        warning = _HOLDS_ALL if "env" in self.notes else ""
        note = "; ".join(filter(None, (why, warning)))
        return Artifact(
            target.name,
            kind="files",
            format=file.suffix.removeprefix("."),
            status="partial" if why else "whole",
            note=note,
        )


def _with_what_was_given(notes: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Add to *notes* how the process that closed the window judged the report."""
    who, pid = notes["joined"]["who"], notes["joined"]["pid"]
    end = time.monotonic() + _GIVEN_S
    while not (given := read_notes(folder / GIVEN)) and is_alive(pid) and time.monotonic() < end:
        time.sleep(_POLL_S)
    if not given:
        raise CaptureError(
            f"the window is in the report of {who} (process {pid}), which has not ended it"
        )
    why = str(notes.get("why") or given["why"])
    early_s = (notes["wall"][-1] - given["ended_ns"]) / 1e9
    if not why and early_s > _EARLY_S:
        why = f"{who} began the window and ended it {early_s:.1f} s before this process did"
    return {**notes, "why": why, "whole": not why}
