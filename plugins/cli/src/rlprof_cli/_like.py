"""The durations of windows in an earlier run, and the cost of recording them.

Medians, because the first window of a process also pays for warming up.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.config import Config, ToolUse
    from rlprof_run import CaptureResult, Run, Span

STEP = "step"
"""The window of continuous mode, by name."""


@attrs.frozen
class Figures:
    """The cost of one tool in the windows of one name."""

    windows: int
    slowdown: float | None
    """None: all of the windows were recorded, or none of them can be compared."""
    bytes: int
    stop_s: float | None
    has_other_options: bool


@attrs.frozen
class Like:
    """The windows of one role of an earlier run, as *config* would open them."""

    bare: Mapping[str, list[float]]
    """Name → their duration without recording, in seconds."""
    recorded: Mapping[str, list[float]]
    captures: Mapping[tuple[str, str], list[CaptureResult]]
    """By tool and name."""

    def took_s(self) -> dict[str, float]:
        """Return the duration of each window, by name; use recorded ones if need be."""
        return {name: median(values) for name, values in {**self.recorded, **self.bare}.items()}

    def figures(self, use: ToolUse, name: str) -> Figures | None:
        """Return the cost of *use* in the windows of that name; None: it recorded none of them."""
        captures = self.captures.get((use.name, name))
        if not captures:
            return None
        bare, recorded = self.bare.get(name), self.recorded.get(name)
        stops = [capture.stop_s for capture in captures if capture.stop_s is not None]
        return Figures(
            len(captures),
            max(1.0, median(recorded) / median(bare)) if recorded and bare else None,
            round(median(sum(file.size for file in capture.artifacts) for capture in captures)),
            median(stops) if stops else None,
            any(dict(capture.asked) != dict(use.asked) for capture in captures),
        )


def like(run: Run, config: Config, role: str) -> Like:
    """Look up in *run* the windows that *config* would open of *role*."""
    is_by_phase = config.mode == "discrete"
    phases = config.roles[role].phases
    captures: dict[tuple[str, str], list[CaptureResult]] = {}
    seen: set[tuple[str, int, str]] = set()
    for capture in run.captures:
        window = capture.window
        if capture.target.role != role or is_by_phase != (window.phase is not None):
            continue
        name = STEP if window.phase is None else window.phase
        seen.add((capture.process, window.start_step, name))
        if capture.state in ("whole", "partial") and (phases is None or name in phases):
            captures.setdefault((capture.tool, name), []).append(capture)
    bare: dict[str, list[float]] = {}
    recorded: dict[str, list[float]] = {}
    for span in _spans(run, role, "phase" if is_by_phase else "step"):
        name = span.name if is_by_phase else STEP
        if phases is None or name in phases:
            was_recorded = (span.process, span.step, name) in seen
            (recorded if was_recorded else bare).setdefault(name, []).append(span.seconds)
    return Like(bare, recorded, captures)


def _spans(run: Run, role: str, kind: str) -> list[Span]:
    """List the steps or phases of *role*, without phases inside of others: they open no window."""
    found = [span for span in run.spans() if span.kind == kind and span.target.role == role]
    inside = {(span.process, span.id) for span in found}
    return [span for span in found if (span.process, span.parent) not in inside]
