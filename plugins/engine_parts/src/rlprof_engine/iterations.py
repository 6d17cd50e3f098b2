"""Which engine steps of a window to record, as engine plugins are asked."""

from __future__ import annotations

from typing import Any

import attrs


def at_least(least: int) -> Any:
    """Return a validator of a whole number that may be left out."""

    def validate(_: Any, __: Any, value: int | None) -> None:
        if value is not None and value < least:
            raise ValueError(f"expected at least {least}, got {value}")

    return validate


@attrs.frozen
class Iterations:
    """Which engine steps of a window to record: the runs of the model, of whatever batch."""

    count: int | None = attrs.field(default=None, validator=at_least(1))
    """Recorded in a row; none: all that come."""
    skip: int = attrs.field(default=0, validator=at_least(0))
    """Passed over first."""
