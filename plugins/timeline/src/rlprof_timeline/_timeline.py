"""The exporter: one file, one clock, for a run or for traces that rlprof did not make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof import hookimpl
from rlprof_timeline._archive import ARCHIVE, write_archive
from rlprof_timeline._loose import of_files
from rlprof_timeline._recorded import of_run
from rlprof_timeline._write import FILE, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rlprof.rundir import Run
    from rlprof_timeline._source import Plan


class Timeline:
    """Lay all traces and spans of a run on one clock, in one file that Perfetto opens."""

    @staticmethod
    def arguments(group: Any) -> None:
        """Add `--archive`."""
        group.add_argument(
            "--archive",
            action="store_true",
            help=f"write {ARCHIVE} instead: the traces as they lie, with offsets, at the speed of "
            "a copy; for Perfetto 58 and later (ui.perfetto.dev is), older ones open it without a "
            "word and show the tracks of all ranks folded, at wrong times",
        )

    @hookimpl
    def export(self, run: Run, out: Path, options: Mapping[str, Any]) -> list[Path]:
        """Write `timeline.json.gz` into *out*, or the archive; it is whole or not there."""
        return [_writer(options)(of_run(run), out)]

    @hookimpl
    def export_files(
        self, files: Sequence[Path], out: Path, options: Mapping[str, Any]
    ) -> list[Path]:
        """Do the same with traces that rlprof did not make."""
        last = (out / FILE).resolve()  # all that is in it would be there twice
        files = [file for file in files if file.resolve() != last] or files
        return [_writer(options)(of_files(files), out)]


def _writer(options: Mapping[str, Any]) -> Callable[[Plan, Path], Path]:
    return write_archive if options.get("archive") else write
