"""What a config would cost on this host: each role's tools, measured in a process of their own."""

from __future__ import annotations

import sys
from statistics import median
from typing import TYPE_CHECKING

from rlprof.cli._table import seconds, size, table
from rlprof.config import choose_tools
from rlprof.errors import ConfigError
from rlprof.session import calibration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof.config import Config, ToolUse
    from rlprof.rundir import Run
    from rlprof.session.calibration import Calibration


def estimates(config: Config, like: Run | None, window_s: float | None) -> str:
    """Lay out the costs of one window of each role and tool."""
    rows, reasons = [], []
    cache: dict[str, Calibration | str] = {}
    for role in config.roles:
        try:
            uses = [use for use in choose_tools(config, [role])[role] if use.kind == "tool"]
        except ConfigError as exc:
            reasons += [f"no estimate: {fault}" for fault in exc.faults]
            continue
        for use in uses:
            cost = cache.setdefault(f"{use.name} {use.asked}", _measured(use))
            if isinstance(cost, str):
                reasons.append(f"no estimate of {use.name}: {cost}")
                continue
            for phase, took_s in _windows(config, role, like, window_s):
                guess = cost.of(took_s)
                rows.append((
                    role, use.name, phase, seconds(took_s), f"{guess['slowdown']:.1f} x",
                    size(round(guess["bytes"])), seconds(guess["stop_s"]),
                ))  # fmt: skip
    parts = []
    if rows:
        head = ("ROLE", "TOOL", "WINDOW", "TAKES", "RECORDED", "SIZE", "STOP")
        right = ("TAKES", "RECORDED", "SIZE", "STOP")
        parts.append("one window costs at most, measured on this host:\n")
        parts.append(table(head, rows, right=right))
    return "\n".join([*parts, *dict.fromkeys(reasons)])


def _measured(use: ToolUse) -> Calibration | str:
    if sys.stderr.isatty() and calibration.known(use) is None:
        print(f"measuring {use.name} for a few seconds ...", file=sys.stderr, flush=True)
    return calibration.measured(use)


def _windows(
    config: Config, role: str, like: Run | None, window_s: float | None
) -> Iterator[tuple[str, float]]:
    """List the windows of *role* with how long each takes when nobody records it."""
    phases = config.roles[role].phases
    if like is not None and window_s is None:
        kind = "phase" if config.mode == "discrete" else "step"
        took: dict[str, list[float]] = {}
        for span in like.spans():
            if span.kind == kind and span.target.role == role:
                took.setdefault(span.name if kind == "phase" else "step", []).append(span.seconds)
        for name, values in took.items():
            if phases is None or name in phases:
                yield name, median(values)
        return
    names = phases if config.mode == "discrete" else ("step",)
    for name in names or ("each phase",):
        yield name, 1.0 if window_s is None else window_s
