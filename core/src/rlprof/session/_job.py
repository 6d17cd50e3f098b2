"""A capture that waits to be exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RAW = "raw"
"""Below the scratch folder of a capture: the folder of the tool."""


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
