"""The cost of a config, taken from an earlier run or measured for each tool on this host.

Measured in a process of its own, on work that leaves the tool no pause: an upper bound.
"""

from __future__ import annotations

import sys
from textwrap import fill
from typing import TYPE_CHECKING

from rlprof.config import check_config
from rlprof_cli import _calibration
from rlprof_cli._like import STEP, like
from rlprof_cli.table import is_quiet, seconds, size, table

if TYPE_CHECKING:
    from rlprof.config import Config, ToolUse
    from rlprof_cli._calibration import Calibration
    from rlprof_cli._like import Figures, Like
    from rlprof_run import Run

_HEAD = ("ROLE", "TOOL", "WINDOW", "DURATION", "SLOWDOWN", "SIZE", "STOP")
_RIGHT = ("DURATION", "SLOWDOWN", "SIZE", "STOP")
_BOUND = (
    "This is an upper bound, for {} in which the tool has no pause. Your phases may be far "
    "shorter, or call fewer operators{}."
)

_NO_ENGINE = "engine {}: not estimated (rlprof ls of an earlier run shows what one cost)"


def estimates(config: Config, run: Run | None, window_s: float | None) -> str:
    """Lay out the costs of one window of each role and tool."""
    seen: list[tuple[str, ...]] = []
    guessed: list[tuple[str, ...]] = []
    reasons: list[str] = []
    cache: dict[str, Calibration | str] = {}
    for role in config.roles:
        chosen = check_config(config, roles=[role])[1][role]
        reasons += [_NO_ENGINE.format(use.name) for use in chosen if use.kind == "engine"]
        uses = [use for use in chosen if use.kind == "tool"]
        earlier = None if run is None else like(run, config, role)
        windows = _windows(config, role, earlier, window_s)
        if run is not None and uses and not windows:
            reasons.append(f"no estimate of {role}: {run.path} has no such window")
        for use in uses:
            figures = {} if earlier is None else _figures(earlier, use, windows)
            for name, cost in figures.items():
                seen.append(_seen(role, use, name, windows[name], cost))
                if cost.has_other_options:
                    reasons.append(f"{use.name} was recorded with other options there")
            rest = {name: took_s for name, took_s in windows.items() if name not in figures}
            found = _measured(use, cache) if rest else ""
            if isinstance(found, str):
                reasons += [f"no estimate of {use.name}: {found}"] if found else []
                continue
            guessed += [_guessed(role, use, *window, found) for window in rest.items()]
    notes = "\n".join(dict.fromkeys(reasons))
    return "\n\n".join([*_tables(seen, guessed, run, window_s), *([notes] if notes else [])])


def _tables(
    seen: list[tuple[str, ...]],
    guessed: list[tuple[str, ...]],
    run: Run | None,
    window_s: float | None,
) -> list[str]:
    parts = []
    if seen and run is not None:
        parts.append(f"one window cost in {run.path}, by the median:")
        head = (*_HEAD[:3], "SEEN", *_HEAD[3:])
        parts.append(table(head, seen, right=("SEEN", *_RIGHT)))
    if guessed:
        parts.append("one window costs at most, measured on this host:")
        parts.append(table(_HEAD, guessed, right=_RIGHT))
        parts.append(fill(_BOUND.format(*_said(run, window_s)), 100))
    return parts


def _said(run: Run | None, window_s: float | None) -> tuple[str, str]:
    """Describe which window is estimated, and how to get a better estimate."""
    if run is not None:
        return "windows of these lengths", "; that run recorded none of these"
    if window_s is not None:
        return f"a window of {seconds(window_s)}", ": --like RUN shows the cost of an earlier run"
    hint = "give their length by --window-s S, or use the costs of a run by --like RUN"
    return f"a window of {seconds(1.0)}", f": {hint}"


def _windows(
    config: Config, role: str, earlier: Like | None, window_s: float | None
) -> dict[str, float]:
    """Map the windows of *role* to their durations without recording."""
    if earlier is not None:
        return earlier.took_s()
    names = config.roles[role].phases if config.mode == "discrete" else (STEP,)
    return dict.fromkeys(names or ("each phase",), 1.0 if window_s is None else window_s)


def _figures(earlier: Like, use: ToolUse, windows: dict[str, float]) -> dict[str, Figures]:
    found = {name: earlier.figures(use, name) for name in windows}
    return {name: figures for name, figures in found.items() if figures is not None}


def _seen(role: str, use: ToolUse, name: str, took_s: float, cost: Figures) -> tuple[str, ...]:
    slower = "-" if cost.slowdown is None else f"{cost.slowdown:.1f} x"
    return (
        role, use.name, name, str(cost.windows), seconds(took_s), slower, size(cost.bytes),
        seconds(cost.stop_s),
    )  # fmt: skip


def _guessed(
    role: str, use: ToolUse, name: str, took_s: float, cost: Calibration
) -> tuple[str, ...]:
    return (
        role, use.name, name, seconds(took_s), f"{cost.slowdown:.1f} x",
        size(round(cost.bytes_per_s * took_s)), seconds(cost.stop_per_s * took_s),
    )  # fmt: skip


def _measured(use: ToolUse, cache: dict[str, Calibration | str]) -> Calibration | str:
    """Measure *use*, unless another role uses it with the same options."""
    key = f"{use.name} {use.asked}"
    if key not in cache:
        is_new = _calibration.can_be_measured(use) and _calibration.known(use) is None
        if is_new and not is_quiet():
            print(f"measuring {use.name} ...", file=sys.stderr, flush=True)
        cache[key] = _calibration.measured(use)
    return cache[key]
