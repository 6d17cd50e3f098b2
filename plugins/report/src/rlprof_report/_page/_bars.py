"""All bars of all processes in few bytes, for the script of a page.

A bar is three numbers: its name, how long after the one before it began, how long it took, both in
tenths of a millisecond. Their JSON is deflated and in base64; browsers inflate it themselves.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any

from rlprof_report._page._color import NOTHING, OURS, ink
from rlprof_report._plain import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_report.values import Analysis

_TENTHS = 10_000
"""Of a millisecond, in a second."""


def bars_of(analysis: Analysis, colors: Mapping[str, str], *, show: int | None) -> dict[str, Any]:
    """Return the data that the script needs, ready for JSON; it begins with the step *show*."""
    ours = sorted({f"rlprof: {touch.what}" for touch in analysis.touches})
    names = [*colors, *ours]
    index = {name: at for at, name in enumerate(names)}
    touches: dict[str, list[tuple[str, float, float]]] = {}
    for touch in analysis.touches:
        bar = (f"rlprof: {touch.what}", touch.start_s, touch.end_s)
        touches.setdefault(touch.process, []).append(bar)
    starts = [bar[1] for lane in analysis.lanes for bar in lane.bars]
    first = min([*starts, *(step.start_s for step in analysis.steps)], default=0.0)
    lanes = []
    for lane in analysis.lanes:
        every = sorted(
            [*lane.bars, *touches.get(lane.process, ())], key=lambda bar: (bar[1], -bar[2])
        )
        own, before = list[int](), 0
        for name, start, end in every:
            at = max(before, round((start - first) * _TENTHS))
            own += index[name], at - before, max(0, round((end - start) * _TENTHS))
            before = at
        lanes.append(own)
    text = json.dumps(lanes, separators=(",", ":"))
    shades = [*colors.values(), *([OURS] * len(ours))] or [NOTHING]
    return {
        "lanes": [plain(lane.title, 80) for lane in analysis.lanes],
        "names": [plain(name, 80) for name in names],
        "colors": shades,
        "inks": [ink(color) for color in shades],
        "ours": len(colors),
        "steps": [
            [step.step, round(step.start_s - first, 4), round(step.seconds, 4)]
            for step in analysis.steps
        ],
        "show": show,
        "bars": base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii"),
    }
