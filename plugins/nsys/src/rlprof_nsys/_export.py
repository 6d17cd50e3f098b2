"""What becomes of a report: for now the file itself."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from rlprof import Artifact, CaptureError
from rlprof_nsys._nsys import NOTES

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof import Capture


def exported(capture: Capture, folder: Path, out: Path) -> list[Artifact]:
    """Hand on the report; partial where nobody has said that it is whole."""
    try:
        notes = json.loads((folder / NOTES).read_bytes())
    except (OSError, ValueError):
        notes = {}
    for name in ("report.nsys-rep", "report.qdstrm"):
        file = folder / name
        if file.is_file() and file.stat().st_size:
            break
    else:
        raise CaptureError(notes.get("why") or "nsys left no report")
    why = notes.get("why") or ""
    if not notes.get("whole") or notes.get("bytes") != file.stat().st_size:
        why = why or "the report is not the one that was written"
    target = f"{capture.stem}{file.suffix}"
    shutil.copyfile(file, out / target)
    return [
        Artifact(
            target,
            kind="files",
            format=file.suffix.removeprefix("."),
            status="partial" if why else "whole",
            note=why,
        )
    ]
