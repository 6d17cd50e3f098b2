"""Reads the span files of a run into columns, so that a report needs no object for each span."""

from __future__ import annotations

from rlprof_report._spans.lines import LAST_LINE
from rlprof_report._spans.recorded import Recorded, read_recorded
from rlprof_report._spans.rows import NO_STEP, Words

__all__ = ["LAST_LINE", "NO_STEP", "Recorded", "Words", "read_recorded"]
