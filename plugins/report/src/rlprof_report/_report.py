"""The exporter `report`: one set of figures as a page, as JSON and as text."""

from __future__ import annotations

import json
import os
from math import isfinite
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof_report.values import Analysis
    from rlprof_run import Run

SCHEMA = 1
"""Changes when a field is removed or changes its meaning, not when one is added."""
_ALL = 10_000
"""Lines of `report.txt`: it leaves no note out."""


class Report:
    """Show where the time of every step went, and why one was slow."""

    @hookimpl
    def render(self, run: Run, out: Path, options: Mapping[str, Any]) -> list[Path]:  # noqa: ARG002
        """Write `report.html`, `.json` and `.txt` into *out*, each whole or not at all."""
        from rlprof_report import _page
        from rlprof_report._analyse import analyse
        from rlprof_report._figures.lanes import counters_of
        from rlprof_report._terminal import text_of

        analysis, problems = analyse(run), list[str]()
        counters = counters_of(run, analysis.epoch_ns, problems)
        notes = (*analysis.notes, *problems)
        analysis = attrs.evolve(analysis, counters=counters, notes=notes)
        texts = {
            "report.html": _page.page(analysis),
            "report.json": report_json(analysis),
            "report.txt": text_of(analysis, height=_ALL) + "\n",
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


def report_json(analysis: Analysis) -> str:
    """Return *analysis* as strict JSON: a field a key, numbers to six decimals, NaN as null."""
    parts = [f'{{"schema":{SCHEMA}']
    for field in attrs.fields(type(analysis)):
        value = getattr(analysis, field.name)
        if isinstance(value, tuple):  # a step at a time: all at once are ten times their text
            text = f"[{','.join(_text(one) for one in value)}]"
        else:
            text = _text(value)
        parts.append(f'"{field.name}":{text}')
    return ",".join(parts) + "}"


def _text(value: Any) -> str:
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """Return *value* as JSON types, without our properties, which are not fields."""
    if isinstance(value, float):
        return round(value, 6) if isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if attrs.has(type(value)):
        return {
            field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))
        }
    return str(value)
