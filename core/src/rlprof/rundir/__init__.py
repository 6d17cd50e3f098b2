"""The run folder: its identity, its manifest and spans, its clocks.

    <run_dir>/<run id>/              a resumed run lives in <run id>/attempt_2/, …
      run.json                       config as asked, versions, expected targets; written first
      manifest/<process>.jsonl       one writer each, append only
      spans/<process>.jsonl          likewise
      counters/<process>.jsonl       likewise
      step_000007/<phase>/<target>/<tool>/…
      exports/                       what `rlprof export` makes

Manifest and spans are separate files because a manifest is read whole and spans are streamed.
`rlprof_run` reads the folder; docs/manifest.md is the contract between the two.
"""

from __future__ import annotations

from rlprof.rundir._files import oddity, open_regular, own_folder, read_regular, scratch_name
from rlprof.rundir._identity import RunFolder, join
from rlprof.rundir._lines import (
    SALVAGED,
    Journal,
    RawSpan,
    as_json,
    as_line,
    known,
    number_of,
    span_line,
    span_record,
)
from rlprof.rundir._process import Here, devices, is_alive, read_clock, visible_devices

__all__ = [
    "SALVAGED",
    "Here",
    "Journal",
    "RawSpan",
    "RunFolder",
    "as_json",
    "as_line",
    "devices",
    "is_alive",
    "join",
    "known",
    "number_of",
    "oddity",
    "open_regular",
    "own_folder",
    "read_clock",
    "read_regular",
    "scratch_name",
    "span_line",
    "span_record",
    "visible_devices",
]
