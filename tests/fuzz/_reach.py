"""Which steps from line to line a run took inside the parser; new ones make an input worth keeping.

`sys.settrace` and not a package of coverage: it is there on every Python the tests run on, and
only frames of the parser's own files are traced line by line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType


class Reach:
    """Collects the pairs of lines that followed each other, over all runs."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        self._parts = parts
        self._wanted: dict[CodeType, bool] = {}
        self._seen: set[tuple[int, int]] = set()
        self._last = 0

    def __len__(self) -> int:
        return len(self._seen)

    def during(self, function: Callable[[], Any]) -> tuple[Any, bool]:
        """Return what *function* returns, and whether it went where none had been."""
        before = len(self._seen)
        self._last = 0
        sys.settrace(self._call)
        try:
            result = function()
        finally:
            sys.settrace(None)
        return result, len(self._seen) > before

    def _call(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        wanted = self._wanted.get(code)
        if wanted is None:
            wanted = any(part in code.co_filename for part in self._parts)
            self._wanted[code] = wanted
        return self._line if wanted else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            here = hash((frame.f_code.co_filename, frame.f_lineno))
            self._seen.add((self._last, here))
            self._last = here
        return self._line
