"""What another process notes about a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.types import Target, Window


@attrs.frozen
class Missed:
    """A note of another process about a capture that should exist."""

    target: Target
    window: Window
    tool: str
    note: str
    mono: int
    request: str = ""
    is_fault: bool = True
    """Whether a capture should exist if there is none."""
    late: Mapping[str, Any] = attrs.field(factory=dict)
    """Fields of the capture that say how late it was."""
