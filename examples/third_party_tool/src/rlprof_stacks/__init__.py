"""rlprof's tool `stacks`: what every Python thread of a process was doing in a window, sampled."""

from __future__ import annotations

from rlprof_stacks._tool import Stacks

__all__ = ["Stacks"]
