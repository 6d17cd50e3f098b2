"""Reads a run folder: the captures, what is missing and why, and a part of them.

    run = rlprof.read("outputs/profile/RUN")

`_reader` files to values · `_manifest`, `_fields`, `_capture` the lines of one manifest · `_run`
the values · `_selection`, `_select`, `_unmatched` a part of a run · `_on_nodes`, `_place`,
`_members`, `_offsets` what a fleet's driver says of others · `_lost` damaged span files ·
`_ranges` numbers as ranges · `_lines`, `_clock`, `_spans`, `_counters` lines with times ·
`salvage`, `_scratch` what dead processes left, exported · `exporterspecs` the contract of
exporters.

It needs core and nothing that records: the folder, as docs/manifest.md describes it, is all it has
of a run.
"""

from __future__ import annotations

from rlprof_run._capture import is_untried
from rlprof_run._clock import clock_at, unbroken
from rlprof_run._counters import Sample
from rlprof_run._lost import CUT, GONE, lost_spans
from rlprof_run._place import Place
from rlprof_run._ranges import ranges_of
from rlprof_run._reader import LATEST, RUNS, find_runs, named, read, youngest
from rlprof_run._run import Answer, CaptureResult, Left, Process, Run, Skipped
from rlprof_run._selection import Selection
from rlprof_run._spans import Span
from rlprof_run._unmatched import unmatched

__all__ = [
    "CUT",
    "GONE",
    "LATEST",
    "RUNS",
    "Answer",
    "CaptureResult",
    "Left",
    "Place",
    "Process",
    "Run",
    "Sample",
    "Selection",
    "Skipped",
    "Span",
    "clock_at",
    "find_runs",
    "is_untried",
    "lost_spans",
    "named",
    "ranges_of",
    "read",
    "unbroken",
    "unmatched",
    "youngest",
]
