"""Spans as rows of numpy tables: steps and phases in one, parts of rollouts in another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rlprof.types import DRIVER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof_report._spans.lines import Line

NO_STEP = np.iinfo(np.int64).min
"""Stands for a span outside of any step."""
NOTHING = -1
"""Stands for a word that was not noted."""

STEP, PHASE = 0, 1
SCOPE = np.dtype([
    ("process", "i4"), ("kind", "i1"), ("name", "i4"), ("start", "i8"), ("end", "i8"),
    ("step", "i8"), ("occurrence", "i8"), ("id", "i8"), ("parent", "i8"), ("thread", "i8"),
    ("tokens", "i8"), ("version", "i4"), ("of_fleet", "?"), ("nested", "?"),
    ("by_driver", "?"), ("broken_off", "?"),
])  # fmt: skip
PART = np.dtype([
    ("process", "i4"), ("name", "i4"), ("start", "i8"), ("end", "i8"), ("step", "i8"),
    ("trajectory", "i4"), ("tokens", "i8"), ("replica", "i4"), ("tool", "i4"), ("version", "i4"),
    ("queued", "i8"), ("first_token", "f8"), ("preemptions", "i4"), ("thread", "i8"),
])  # fmt: skip
OTHER = np.dtype([
    ("process", "i4"), ("name", "i4"), ("start", "i8"), ("end", "i8"), ("step", "i8"),
])  # fmt: skip

_THREAD = 0x7FFF_FFFF_FFFF_FFFF


class Words:
    """Numbers for words that recur."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, word: Any) -> int:
        """Return the number of *word*, whatever its type; NOTHING for None."""
        if word is None:
            return NOTHING
        text = word if type(word) is str else str(word)
        found = self._numbers.setdefault(text, len(self.words))
        if found == len(self.words):
            self.words.append(text)
        return found

    def __getitem__(self, number: int) -> str:
        return self.words[number] if number >= 0 else ""


def rows_of(lines: Iterable[Line], process: int, words: Words) -> tuple[np.ndarray, ...]:
    """Sort *lines* of a process into tables: scopes, parts, others."""
    scopes, parts, others = [], [], []
    number = words.number
    for line in lines:
        step = NO_STEP if line.step is None else line.step
        noted = line.attributes
        end = max(line.t0, line.t1)
        if line.kind != "span":
            tokens, version, by_driver, broken_off = 0, NOTHING, False, False
            if noted is not None:
                by_driver, broken_off = noted.source == DRIVER, noted.error is not None
                tokens, version = _count(noted.tokens), number(noted.version)
            scopes.append((
                process, line.kind == "phase", number(line.name), line.t0, end, step,
                line.occurrence, line.id, -1 if line.parent is None else line.parent,
                line.thread & _THREAD, tokens, version, False, False, by_driver, broken_off,
            ))  # fmt: skip
        elif noted is not None and (noted.trajectory is not None or line.name == "request"):
            parts.append((
                process, number(line.name), line.t0, end, step, number(noted.trajectory),
                _count(noted.tokens), number(noted.replica), number(noted.tool),
                number(noted.version), int(_seconds(noted.queued_s, 0) * 1e9),
                _seconds(noted.first_token_s),
                NOTHING if noted.preemptions is None else min(_count(noted.preemptions), 2**30),
                line.thread & _THREAD,
            ))  # fmt: skip
        else:
            others.append((process, number(line.name), line.t0, end, step))
    return np.array(scopes, SCOPE), np.array(parts, PART), np.array(others, OTHER)


def _count(value: Any) -> int:
    is_number = type(value) in (int, float) and 0 < value < 1 << 63
    return min(int(value), 1 << 40) if is_number else 0


def _seconds(value: Any, unknown: float = math.nan) -> float:
    is_number = type(value) in (int, float) and 0 <= value < 1e9
    return float(value) if is_number else unknown
