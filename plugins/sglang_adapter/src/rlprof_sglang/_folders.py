"""Folders that a scheduler can write into: if it fails at a stop, it ends the whole engine."""

from __future__ import annotations

import tempfile
from pathlib import Path


def tried(folder: Path) -> None:
    """Make *folder* and write into it; raise OSError if that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def elsewhere() -> Path:
    """Return another folder, on this host."""
    try:
        return Path(tempfile.mkdtemp(prefix="rlprof-sglang-"))
    except OSError:  # none: the export fails, we catch that, and the ranks still meet
        return Path("/")
