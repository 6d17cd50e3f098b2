"""Folders that a scheduler can write into: one that fails at a stop takes its engine with it."""

from __future__ import annotations

import tempfile
from pathlib import Path


def tried(folder: Path) -> None:
    """Make it and write into it; raise OSError where that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def elsewhere() -> Path:
    """Return another one, on this host."""
    try:
        return Path(tempfile.mkdtemp(prefix="rlprof-sglang-"))
    except OSError:  # nowhere: the export fails then, which is caught, and the ranks still meet
        return Path("/")
