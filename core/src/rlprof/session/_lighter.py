"""Lighter options under pressure: a smaller capture is better than none, or than a waiting step.

The tool itself makes its options lighter.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.config import ToolUse
    from rlprof.session._boundary import Boundary


def lighter(
    use: ToolUse, notches: int, one_lighter: Callable[..., Any], boundary: Boundary
) -> tuple[ToolUse, str] | None:
    """Return *use* with lighter options, and these in words; None: nothing is lighter.

    *one_lighter* is the tool's hook: it returns options one notch cheaper, or None.
    """
    options = use.options
    for _ in range(notches):
        less = boundary.call(f"{use.name}.lighter", partial(one_lighter, options=options))
        if less is None:
            break
        options = less
    if options is use.options:
        return None
    changed = _changed(use.options, options)
    chosen = attrs.evolve(use, options=options, asked={**use.asked, **changed})
    return chosen, ", ".join(f"{name}: {value}" for name, value in changed.items())


def _changed(before: Any, after: Any) -> dict[str, Any]:
    """Name the options that differ, as plain data."""
    old, new = attrs.asdict(before), attrs.asdict(after)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in new.items()
        if value != old[name]
    }
