"""The notes of a window: what `export` and `salvage` need, written while the window is open."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NOTES = "npu.json"
"""Next to torch_npu's folder: requested and applied options, clocks, and how the window ended."""
_ALWAYS = {"rank", "applied", "marks", "analysis", "timeout_s", "export_type", "clock"}


def write_notes(folder: Path, notes: Mapping[str, Any]) -> None:
    """Replace the notes in *folder*; raise CaptureError if they cannot be written."""
    draft = folder / f"{NOTES}.tmp"
    try:
        draft.write_text(json.dumps(notes))
        draft.rename(folder / NOTES)
    except OSError as exc:
        raise CaptureError(f"cannot write notes into {folder}: {exc.strerror or exc}") from exc


def read_notes(folder: Path) -> dict[str, Any]:
    """Read the notes in *folder*; raise CaptureError if they are damaged."""
    file = folder / NOTES
    notes = None
    if file.is_file():  # reading a FIFO would wait for ever
        with suppress(OSError, ValueError):
            notes = json.loads(file.read_bytes())
    if not isinstance(notes, dict) or not notes.keys() >= _ALWAYS:
        raise CaptureError(f"{file}: the notes of this window are damaged; its raw data are kept")
    return notes
