"""What records an engine, in words: its plugin knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof.errors import one_line

if TYPE_CHECKING:
    from rlprof.config import ToolUse


def engine_words(use: ToolUse) -> str:
    """Name an engine, and what records its own processes."""
    ask = getattr(use.plugin, "who_records", None)
    names = ", ".join(one.name for one in use.inside)
    words = f"inside it: {names}" if names else ""
    if ask is not None:
        try:
            words = one_line(ask(use.options, use.asked_inside))
        except Exception as exc:  # a stranger's code, and words only
            words = one_line(f"who_records raised {type(exc).__name__}: {exc}")
    return f"engine {use.name}" + (f" ({words})" if words else "")
