"""Cautions: the advice of plugins before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof.config import ToolUse

_LONGEST = 500
_RECORDS = "records"
"""Advice with this subject says how an engine is recorded."""


def cautions(uses: Iterable[ToolUse]) -> list[str]:
    """Write a line for each advice of the plugins of *uses*, without duplicates."""
    found = [
        f"caution, {each.name}: {f'{one.about}: ' if one.about else ''}"
        f"{one_line(one.text, longest=_LONGEST)}"
        for use in uses
        for each in (use, *use.inside)
        for one in each.advice
        if one.about != _RECORDS
    ]
    return list(dict.fromkeys(found))


def engine_words(use: ToolUse) -> str:
    """Name an engine, and the tools that record its processes."""
    ways = [one_line(one.text) for one in use.advice if one.about == _RECORDS]
    names = ", ".join(one.name for one in use.inside)
    inside = [f"inside it: {names}"] if names else []
    words = "; ".join(ways or inside)
    return f"engine {use.name}" + (f" ({words})" if words else "")
