"""Write what is in the SQLite of a report as a chrome-trace, a few rows in memory at a time."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_nsys._device_events import device_events
from rlprof_nsys._host_events import CUDA_API, calls, ranges, ranges_in
from rlprof_nsys._mark import DOMAIN
from rlprof_nsys._sqlite import Share, Tables, UnreadableError
from rlprof_nsys._tracks import Tracks
from rlprof_traces import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_BLOCK = 1 << 20
_START_NS = 1_000_000
"""How far `utcEpochNs` may be off the wall clock: 60 to 160 us were measured, under load less than
this (tests/nsys_real/test_export.py)."""
_SLEWED = 2000
"""A wall clock is slewed by one part in this many at most, and nsys read it at the start only."""


@attrs.frozen
class Written:
    """What is in the trace."""

    events: int
    text_size: int
    ranges: int
    """Of the domain in which phases are."""


def write_trace(
    database: Path, file: Path, about: Mapping[str, Any], share: Share | None = None
) -> Written:
    """Write *file*, whole or not at all; UnreadableError where *database* is none of a report.

    *share* is what of it belongs to the process that the trace is of; None: all.
    """
    try:
        with closing(Tables(database, share)) as tables:
            return _write(tables, file, about)
    except sqlite3.Error as exc:
        raise UnreadableError(f"is no SQLite of a report: {exc}") from exc
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
        # SQLite puts anything into any column, and text that is none into its own messages.
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
