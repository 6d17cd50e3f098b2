"""A part of a run, as a value: which steps, roles, windows, tools, and which time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from rlprof.types import Window

SPANS, WINDOWS = "spans", "windows"
"""Names that `only` takes besides tools and engines."""


def _ranges(value: Any) -> tuple[range, ...]:
    """Take numbers and ranges, one or many."""
    items = [value] if isinstance(value, (int, range)) else value
    return tuple(one if isinstance(one, range) else range(one, one + 1) for one in items)


def _words(value: Any) -> tuple[str, ...]:
    """Take names, one or many."""
    return (value,) if isinstance(value, str) else tuple(value)


@attrs.frozen
class Selection:
    """A part of a run; empty or None fields leave nothing out."""

    steps: tuple[range, ...] = attrs.field(default=(), converter=_ranges)
    roles: tuple[str, ...] = attrs.field(default=(), converter=_words)
    windows: tuple[str, ...] = attrs.field(default=(), converter=_words)
    """Each the id of a window, `7/update_actor`, or the name of a phase."""
    only: tuple[str, ...] = attrs.field(default=(), converter=_words)
    """Each the name of a tool or an engine, or `spans`, or `windows`: these without their files."""
    from_ns: int | None = None
    """Epoch ns; spans and captures that ended earlier are left out."""
    until_ns: int | None = None
    """Epoch ns; spans and captures that begin then or later are left out."""

    @property
    def is_all(self) -> bool:
        """Whether it leaves nothing out."""
        return self == Selection()

    def has_step(self, step: int) -> bool:
        """Whether *step* is selected."""
        return not self.steps or any(step in chosen for chosen in self.steps)

    def has_window(self, window: Window) -> bool:
        """Whether *window* is named, and holds a selected step."""
        named = not self.windows or window.id in self.windows or window.phase in self.windows
        return named and (not self.steps or any(_meets(one, window) for one in self.steps))

    def has_spans(self) -> bool:
        """Whether any span is wanted."""
        return not self.only or SPANS in self.only

    def has_time(self, start_ns: int, end_ns: int) -> bool:
        """Whether some of this stretch of time is selected; a moment counts as one ns."""
        if self.until_ns is not None and start_ns >= self.until_ns:
            return False
        return self.from_ns is None or max(end_ns, start_ns + 1) > self.from_ns


def _meets(chosen: range, window: Window) -> bool:
    """Whether a step of *chosen* lies in *window*, which may have no end in sight."""
    skipped = max(0, -(-(window.start_step - chosen.start) // chosen.step))
    return chosen.start + skipped * chosen.step < min(chosen.stop, window.end_step)
