"""What takes longer than it needs to, with cause, evidence and a bound."""

from __future__ import annotations

from rlprof_report._findings.conclude import conclude
from rlprof_report._findings.facts import Facts

__all__ = ["Facts", "conclude"]
