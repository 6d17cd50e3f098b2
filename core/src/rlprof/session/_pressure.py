"""Lighter options under pressure: a smaller capture is better than none, or than a waiting step.

The last window of the same tool decides. The tool itself makes its options lighter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.config import Limits, ToolUse

_SHARE = 0.5
"""Share of `stop_timeout_s`: a stop that took more may soon exceed the limit."""


@attrs.define
class Pressure:
    """The lighter options of one tool by now, and the cost of its last window."""

    notches: int = 0
    reason: str = ""
    """Why it records less."""
    last_bytes: int = 0
    last_stop_s: float = 0.0

    def lighter(
        self, use: ToolUse, less_than: Callable[[Any], Any], *, left: int, limits: Limits
    ) -> tuple[ToolUse, str] | None:
        """Return the replacement of *use* for the next window, and why.

        *less_than* returns options one notch cheaper; *left* are the remaining bytes.
        """
        reason = self._reason(left, limits)
        if reason:
            self.notches += 1
            self.reason = reason
        options = use.options
        for _ in range(self.notches):
            less = less_than(options)
            if less is None:
                break
            options = less
        if options is use.options:
            return None
        changed = _changed(use.options, options)
        chosen = attrs.evolve(use, options=options, asked={**use.asked, **changed})
        what = ", ".join(f"{name}: {value}" for name, value in changed.items())
        return chosen, f"{what}; {self.reason}"

    def _reason(self, left: int, limits: Limits) -> str:
        """Say why the next window should be lighter than the last; empty if it need not be."""
        size, stop_s = self.last_bytes, self.last_stop_s
        self.last_bytes, self.last_stop_s = 0, 0.0  # each window is judged once
        if size > left:
            share = f"{left:,} of its share of limits.bytes are left"
            return f"the last window took {size:,} bytes and {share}"
        if stop_s > _SHARE * limits.stop_timeout_s:
            return f"the last stop took {stop_s:.1f} s of limits.stop_timeout_s"
        return ""


def _changed(before: Any, after: Any) -> dict[str, Any]:
    """Name the options that differ, as plain data."""
    old, new = attrs.asdict(before), attrs.asdict(after)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in new.items()
        if value != old[name]
    }
