"""Trace files, read and written in bounded memory; a damaged one gives all that is whole.

Reading::

    text = TraceText(path)
    for batch in text.batches():          # whole events with commas between them, strict JSON
        events = json.loads(b"[" + batch + b"]")
    text.head, text.tail                  # the other members; text.problems and text.dropped say
                                          # what is missing

Writing::

    with whole(path) as packed:           # the file is whole or not there
        packed.write(b'{"traceEvents": []}')
"""

from __future__ import annotations

from rlprof_traces._lines import PLAIN, encode, named, nanoseconds, timed, unescaped
from rlprof_traces._packed import Packed, whole
from rlprof_traces._tail import tail_of
from rlprof_traces._text import TraceText
from rlprof_traces._unpacked import DamagedError, Unpacked
from rlprof_traces._unreadable import UnreadableError, opened

__all__ = [
    "PLAIN",
    "DamagedError",
    "Packed",
    "TraceText",
    "Unpacked",
    "UnreadableError",
    "encode",
    "named",
    "nanoseconds",
    "opened",
    "tail_of",
    "timed",
    "unescaped",
    "whole",
]
