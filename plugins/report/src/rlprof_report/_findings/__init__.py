"""What takes longer than it needs to, with cause, evidence and a bound."""

from __future__ import annotations

from rlprof_report._findings.conclude import conclude
from rlprof_report._findings.facts import Facts
from rlprof_report._findings.lost import lost_of, notes_of, silent_of
from rlprof_report._findings.met import met_of
from rlprof_report._findings.verdict import with_lost

__all__ = ["Facts", "conclude", "lost_of", "met_of", "notes_of", "silent_of", "with_lost"]
