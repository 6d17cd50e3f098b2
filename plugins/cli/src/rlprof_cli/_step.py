"""The current step of a live run, from what its processes wrote last."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from rlprof.rundir import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlprof_run import Run

_MOST = 8
"""Processes to read: the others are near them."""
_TAIL = 1 << 16
"""Bytes at the end of a file of spans that are read."""


def newest_step(run: Run) -> tuple[int, bool] | None:
    """Return the highest step in the spans of live processes, and whether it has ended."""
    live = [process for process in run.processes if process.state == "running"]
    files = [run.path / "spans" / f"{process.name}.jsonl" for process in live[:_MOST]]
    return max((found for file in files for found in _steps(file)), default=None)


def step_words(run: Run) -> str:
    """Name the current step of the run; empty if no step is known."""
    newest = newest_step(run)
    if newest is None:
        return ""
    step, has_ended = newest
    return f"step {step} has ended" if has_ended else f"in step {step}"


def _steps(file: Path) -> Iterator[tuple[int, bool]]:
    try:
        with open_regular(file) as spans:
            size = spans.seek(0, os.SEEK_END)
            spans.seek(max(0, size - _TAIL))
            lines = spans.read(_TAIL).splitlines()
    except OSError:  # it has written none
        return
    for text in lines:
        try:
            line = json.loads(text)
            if type(line["step"]) is int:
                yield line["step"], line["kind"] == "step"
        except (ValueError, KeyError, TypeError, RecursionError):  # cut, or no span
            continue
