"""The option `iterations` of engine plugins: the engine steps of a window to record."""

from __future__ import annotations

from typing import Any

import attrs


def at_least(least: int) -> Any:
    """Return a validator for an optional whole number of at least *least*."""

    def validate(_: Any, __: Any, value: int | None) -> None:
        if value is not None and value < least:
            raise ValueError(f"expected at least {least}, got {value}")

    return validate


@attrs.frozen
class Iterations:
    """Which engine steps of a window to record; each step runs the model on one batch."""

    count: int | None = attrs.field(default=None, validator=at_least(1))
    """Number of consecutive steps to record; none: all of them."""
    skip: int = attrs.field(default=0, validator=at_least(0))
    """Number of steps to skip first."""
