"""The values in a line of a manifest: its target, its window, its times and seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import known
from rlprof.types import Target, Window

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_S = 1e9
"""Seconds that no hook takes: 31 years."""


def target_of(line: Mapping[str, Any]) -> Target | None:
    """Read the target a line names; None: the process that wrote it."""
    if line.get("target") is None:
        return None
    target = known(Target, line["target"])
    return attrs.evolve(
        target,
        role=str(target.role),
        rank=int(target.rank),
        world_size=int(target.world_size),
        replica=None if target.replica is None else int(target.replica),
        worker=None if target.worker is None else int(target.worker),
    )


def window_of(line: Mapping[str, Any]) -> Window:
    """Read the window a line names."""
    window = known(Window, line["window"])
    return attrs.evolve(
        window,
        start_step=int(window.start_step),
        end_step=int(window.end_step),
        phase=None if window.phase is None else str(window.phase),
        occurrence=int(window.occurrence),
    )


def seconds_of(line: Mapping[str, Any]) -> float | None:
    """Read how long the hook took, if the line says so."""
    if line.get("seconds") is None:
        return None
    seconds = float(line["seconds"])
    if not 0 <= seconds < _MOST_S:
        raise ValueError(seconds)
    return seconds


def time_of(line: Mapping[str, Any], key: str = "mono", below: int = 1 << 60) -> int:
    """Read a time, in ns; sums of a few with the default bound stay within 64 bits."""
    time_ns = int(line[key])
    if abs(time_ns) >= below:
        raise ValueError(time_ns)
    return time_ns
