"""The commands that rlprof-report offers, one module each."""

from __future__ import annotations
