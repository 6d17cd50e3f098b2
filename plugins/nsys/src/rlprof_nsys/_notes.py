"""Notes on a window, in a file next to its report, which is replaced atomically."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NOTES = "nsys.json"
"""The file in the window's folder from which `export` reads."""


def write_notes(file: Path, notes: Mapping[str, Any]) -> None:
    """Write *notes* atomically, because other processes read it."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(json.dumps(notes), encoding="utf-8")
    part.replace(file)


def read_notes(file: Path) -> dict[str, Any]:
    """Read the notes in *file*; empty if there are none."""
    try:
        notes = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}
