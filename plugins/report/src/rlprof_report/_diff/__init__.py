"""Comparing two runs, or parts of one: honest about noise, lengths and autocorrelation.

`effect` estimates one change, `times` does so for a step and its phases, `slowest` names the rank
behind a change, `kernels` and `rest` compare what is no time of a phase, `words` prints it.
"""

from __future__ import annotations

from rlprof_report._diff.compared import diff
from rlprof_report._diff.effect import Effect, Series, effect
from rlprof_report._diff.part import Part
from rlprof_report._diff.words import text

__all__ = ["Effect", "Part", "Series", "diff", "effect", "text"]
