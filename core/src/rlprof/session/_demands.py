"""The contract of recording on demand: a track asks at each step, and rlprof-live answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.config import ToolUse
    from rlprof.schedule import Demand


class Demands(Protocol):
    """The demands on one target; one of them may rule a step."""

    @property
    def waiting(self) -> tuple[Demand, ...]:
        """The demands that still need steps."""

    def begin_step(self, step: int) -> tuple[Demand | None, Sequence[ToolUse]]:
        """Return the demand that rules *step*, if there is one, and what records it."""

    def end_step(self, step: int, demand: Demand) -> None:
        """Count *step* for the *demand* that ruled it."""

    def close(self) -> None:
        """Say which demands are left, once."""
