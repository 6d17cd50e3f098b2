"""What takes longer than it needs to, with cause, evidence and a bound."""

from __future__ import annotations

from rlprof_report._findings.conclude import conclude
from rlprof_report._findings.facts import Facts
from rlprof_report._findings.lost import losses_of, silent_of

__all__ = ["Facts", "conclude", "losses_of", "silent_of"]
