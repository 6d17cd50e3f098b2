"""Compares two runs, or parts of one: honest about noise, lengths and autocorrelation."""

from __future__ import annotations

from rlprof_report._diff.compared import diff, text
from rlprof_report._diff.effect import Effect, Series, effect
from rlprof_report._diff.part import Part

__all__ = ["Effect", "Part", "Series", "diff", "effect", "text"]
