"""What a user should know before the run, in the words of the plugins he uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rlprof.errors import one_line, shown

if TYPE_CHECKING:
    from rlprof.config import ToolUse

_LONGEST = 500


def cautions(uses: Iterable[ToolUse]) -> list[str]:
    """Write a line for each thing that the plugins of *uses* say; what several say, once."""
    found = [
        f"caution, {each.name}: {words}"
        for use in uses
        for each in (use, *use.inside)
        for words in _said(each)
    ]
    return list(dict.fromkeys(found))


def _said(use: ToolUse) -> list[str]:
    ask = getattr(use.plugin, "cautions", None)
    if ask is None:
        return []
    try:
        told = ask(use.options)
        if isinstance(told, str) or not isinstance(told, Iterable):
            found = [f"cautions must return texts, got {shown(told)}"]
        else:
            found = [one_line(words, longest=_LONGEST) for words in told]
    except Exception as exc:  # a stranger's code, and words only
        found = [one_line(f"cautions raised {type(exc).__name__}: {exc}")]
    return found
