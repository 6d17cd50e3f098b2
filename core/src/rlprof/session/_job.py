"""A capture that waits to be exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RAW = "raw"
"""Below the scratch folder of a capture: the folder of the tool."""


def folder_name(place: str, tool: str) -> str:
    """Name the scratch folder of a capture by *place*, the folder of its window, and its tool.

    One folder rather than three, because a step waits for each of them to be made.
    """
    return f"{place.replace('/', '+')}+{tool}"


@attrs.frozen
class Job:
    """One capture to export: its raw data, and where its artifacts go."""

    key: dict[str, Any]
    """Window and tool, as in its lines in the manifest."""
    folder: Path
    out: Path
    root: Path
    """The run folder; artifacts are named relative to it."""
    in_process: bool = False
    """The plugin's class is the script's own, so no other process can import it."""
    measured: Callable[[int], None] | None = None
    """Called with the size of its artifacts."""
