"""Writes the SQLite of a report as a chrome-trace, with only a few rows in memory at a time."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_nsys._arguments import DOMAIN
from rlprof_nsys._device_events import device_events
from rlprof_nsys._host_events import CUDA_API, calls, ranges, ranges_in
from rlprof_nsys._sqlite import Share, Tables, UnreadableError
from rlprof_nsys._tracks import Tracks
from rlprof_traces import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_BLOCK = 1 << 20
_START_NS = 1_000_000
"""The largest error of `utcEpochNs` against the wall clock. We measured 60 to 160 us, and less than
this value under load (tests/nsys_real/test_export.py)."""
_SLEWED = 2000
"""A wall clock is slewed by at most one part in this many; nsys reads it only at the start."""


@attrs.frozen
class Written:
    """The contents of the trace, as numbers."""

    events: int
    text_size: int
    ranges: int
    """Ranges in the domain of the phases."""


def write_trace(
    database: Path, file: Path, about: Mapping[str, Any], share: Share | None = None
) -> Written:
    """Write *file* atomically; raise UnreadableError if *database* is not that of a report.

    *share* selects the events of the trace's process; None: all events.
    """
    try:
        with closing(Tables(database, share)) as tables:
            return _write(tables, file, about)
    except sqlite3.Error as exc:
        raise UnreadableError(f"is not an SQLite export of a report: {exc}") from exc
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
        # SQLite allows any type in any column, and may put invalid text into its messages.
        raise UnreadableError(f"is damaged: {exc}") from exc


def _write(tables: Tables, file: Path, about: Mapping[str, Any]) -> Written:
    error_ns = _START_NS + tables.duration_ns() // _SLEWED
    header = {
        **about,
        "epoch_ns": tables.epoch_ns(),
        "error_ns": error_ns,
        "clock": "utcEpochNs of the report's session",
    }
    events = 0
    with whole(file, fast=True) as packed:
        text = '{"rlprof":' + json.dumps(header, allow_nan=False) + ',\n"traceEvents":['
        separator = "\n"
        pieces, length = [text], len(text)
        for line in _lines(tables):
            pieces += (separator, line)
            separator = ",\n"
            events += 1
            length += len(line) + 2
            if length >= _BLOCK:
                packed.write("".join(pieces).encode("ascii"))
                pieces, length = [], 0
        packed.write("".join([*pieces, "\n]}\n"]).encode("ascii"))
    return Written(events, packed.count, ranges_in(tables, DOMAIN))


def _lines(tables: Tables) -> Iterator[str]:
    tracks = Tracks(tables)
    return chain(
        ranges(tables, tracks),
        calls(tables, tracks, "CUPTI_ACTIVITY_KIND_RUNTIME", CUDA_API),
        device_events(tables, tracks),
        calls(tables, tracks, "OSRT_API", "OS runtime"),
    )
