"""Where it goes: the run folder, its identity, its manifest and spans, its clocks, its reader.

    <run_dir>/<run id>/              a resumed run lives in <run id>/attempt_2/, …
      run.json                       config as asked, versions, expected targets; written first
      manifest/<process>.jsonl       one writer each, append only
      spans/<process>.jsonl          likewise
      counters/<process>.jsonl       likewise
      step_000007/<phase>/<target>/<tool>/…
      exports/                       what `rlprof export` makes

Manifest and spans are separate files because a manifest is read whole and spans are streamed.
"""

from __future__ import annotations

from rlprof.rundir._clock import clock_at, read_clock, unbroken
from rlprof.rundir._counters import Sample
from rlprof.rundir._draft import TRIED
from rlprof.rundir._fields import known
from rlprof.rundir._identity import RunFolder, join
from rlprof.rundir._journal import Journal, as_json, as_line, last_event, read_lines
from rlprof.rundir._left import Place
from rlprof.rundir._nothing import unmatched
from rlprof.rundir._process import Here, Leader, is_alive
from rlprof.rundir._reader import LATEST, RUNS, SALVAGED, find_runs, read, youngest
from rlprof.rundir._regular import open_regular, read_regular
from rlprof.rundir._run import Answer, CaptureResult, Left, Process, Run, Skipped
from rlprof.rundir._selection import Selection
from rlprof.rundir._spans import RawSpan, Span, span_line, span_record
from rlprof.rundir._user_folder import own_folder

__all__ = [
    "LATEST",
    "RUNS",
    "SALVAGED",
    "TRIED",
    "Answer",
    "CaptureResult",
    "Here",
    "Journal",
    "Leader",
    "Left",
    "Place",
    "Process",
    "RawSpan",
    "Run",
    "RunFolder",
    "Sample",
    "Selection",
    "Skipped",
    "Span",
    "as_json",
    "as_line",
    "clock_at",
    "find_runs",
    "is_alive",
    "join",
    "known",
    "last_event",
    "open_regular",
    "own_folder",
    "read",
    "read_clock",
    "read_lines",
    "read_regular",
    "span_line",
    "span_record",
    "unbroken",
    "unmatched",
    "youngest",
]
