"""The exporter: one file, one clock, for a run or for traces of other profilers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof import hookimpl
from rlprof_timeline._loose import of_files
from rlprof_timeline._recorded import of_run
from rlprof_timeline._write import write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlprof_run import Run


class Timeline:
    """Put all traces and spans of a run on one clock, in one file that Perfetto opens."""

    @hookimpl
    def render(self, run: Run, out: Path, options: Mapping[str, Any]) -> list[Path]:
        """Write `timeline.json.gz` into *out*, whole or not at all."""
        return [write(of_run(run), out, options.get("align") or "auto")]

    @hookimpl
    def render_files(
        self, files: Sequence[Path], out: Path, options: Mapping[str, Any]
    ) -> list[Path]:
        """Do the same with traces of other profilers."""
        return [write(of_files(files), out, options.get("align") or "auto")]
