"""The exporter `report`: one set of figures as a page, as JSON and as text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rlprof import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof.rundir import Run
    from rlprof_report.device import Rules


class Report:
    """Say where the time of every step went, and why one was slow."""

    @staticmethod
    def arguments(group: Any) -> None:
        """Add `--rules`."""
        group.add_argument(
            "--rules",
            choices=("rlprof", "hta"),
            default="rlprof",
            help="rules for the figures of devices: rlprof cuts them to the window (default), hta "
            "counts as HolisticTraceAnalysis does",
        )

    @hookimpl
    def export(self, run: Run, out: Path, options: Mapping[str, Any]) -> list[Path]:
        """Write `report.html`, `.json` and `.txt` into *out*; each is whole or not there."""
        import attrs

        from rlprof_report import _page
        from rlprof_report._analyse import analyse
        from rlprof_report._figures.counters import counters_of
        from rlprof_report._json import report_json
        from rlprof_report._terminal import text_of

        rules: Rules = options.get("rules", "rlprof")
        analysis, problems = analyse(run, rules=rules), list[str]()
        counters = counters_of(run, analysis.epoch_ns, problems)
        notes = (*analysis.notes, *problems)
        analysis = attrs.evolve(analysis, counters=counters, notes=notes)
        texts = {
            "report.html": _page.page(analysis),
            "report.json": report_json(analysis),
            "report.txt": text_of(analysis) + "\n",
        }
        return [_written(out / name, text) for name, text in texts.items()]


def notebook(run: Run) -> str:
    """Return one step of *run* as HTML for a notebook: a Gantt over all processes."""
    from rlprof_report import _page
    from rlprof_report._analyse import analyse

    return _page.notebook(analyse(run, most_json_bytes=0))


def _written(file: Path, text: str) -> Path:
    """Replace *file* as a whole: a reader sees the old file or the new one."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8", errors="replace")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return file
