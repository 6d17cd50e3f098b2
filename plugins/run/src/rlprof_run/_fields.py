"""The values in a line of a manifest: its target, its window, its seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import known
from rlprof.types import Target, Window

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    seconds = line.get("seconds")
    return None if seconds is None else float(seconds)
