"""The language model of examples/ray_rl, which is small enough for two cores."""

from __future__ import annotations

from examples.ray_rl.tiny_model import QUIET, SMALL, build

__all__ = ["QUIET", "SMALL", "build"]
