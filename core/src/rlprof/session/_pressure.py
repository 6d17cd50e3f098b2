"""Lighter options under pressure: rather a smaller capture than none, or a step that waits.

Judged by the last window of the same tool. A tool says itself what is lighter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from rlprof.config import Limits, ToolUse
    from rlprof.session._recorder import Recorder

_SHARE = 0.5
"""Of `stop_timeout_s`: a stop that took more is near to being the last."""


def lighter(
    recorder: Recorder, use: ToolUse, *, left: int, limits: Limits
) -> tuple[ToolUse, str] | None:
    """Return what *recorder* should use instead of *use* for its next window, and why."""
    reason = _reason(recorder, left, limits)
    if reason:
        recorder.notches += 1
        recorder.reason = reason
    chosen, options = use, use.options
    for _ in range(recorder.notches):
        less = recorder.lighter(options)
        if less is None:
            break
        options = less
    if options is use.options:
        return None
    changed = _changed(use.options, options)
    chosen = attrs.evolve(use, options=options, asked={**use.asked, **changed})
    what = ", ".join(f"{name}: {value}" for name, value in changed.items())
    return chosen, f"{what}; {recorder.reason}"


def _reason(recorder: Recorder, left: int, limits: Limits) -> str:
    """Say why the next window should be lighter than the last; empty if it need not be."""
    size, stop_s = recorder.last_bytes, recorder.last_stop_s
    recorder.last_bytes, recorder.last_stop_s = 0, 0.0  # each window is judged once
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
