"""The part of a run that a timeline shows, as the options that selected it, for its viewer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from rlprof.errors import one_line
from rlprof_traces import DamagedError, Unpacked, UnreadableError, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlprof import Selection

_PART = re.compile(rb'^\{"rlprof":\{"run":"[^"\\]*","attempt":\d+,"part":("(?:[^"\\]|\\.)*")')
_HEAD = 1 << 16


def part_of(selection: Selection, opened_ns: int) -> str:
    """Write the options that select this part of a run that began at *opened_ns*."""
    return " ".join(_options(selection, opened_ns))


def shown_part(timeline: Path) -> str:
    """Read which part of a run a timeline shows; empty if it shows all or is not a timeline."""
    try:
        with opened(timeline) as file:
            found = _PART.match(Unpacked(file).read(_HEAD))
        return one_line(str(json.loads(found[1])), longest=300) if found else ""
    except (UnreadableError, DamagedError, EOFError, ValueError):
        return ""


def _options(selection: Selection, opened_ns: int) -> Iterator[str]:
    steps = [_steps(one) for one in selection.steps]
    words = ("--role", selection.roles), ("--window", selection.windows), ("--only", selection.only)
    for flag, values in (("--step", steps), *words):
        if values:
            yield f"{flag} {','.join(values)}"
    for flag, at_ns in (("--from", selection.from_ns), ("--until", selection.until_ns)):
        if at_ns is not None:
            yield f"{flag} {(at_ns - opened_ns) / 1e9:.9g}"


def _steps(one: range) -> str:
    last = f"-{one.stop - 1}" if len(one) > 1 else ""
    return f"{one.start}{last}" + (f" (every {one.step})" if one.step > 1 else "")
