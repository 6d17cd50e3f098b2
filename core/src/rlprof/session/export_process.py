"""The helper process of exports; it is called with SECONDS FOLDER OUT ROOT…

It reads the files of core and the tool in FOLDER, lets the tool make artifacts in OUT, and writes
`exported.json` into FOLDER. If the tool raised nothing and made every artifact whole, the raw data
is deleted. More FOLDER OUT ROOT may follow: they are exported one after another.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.types import Artifact

RAW = "raw"
"""Below the scratch folder of a capture: the folder of the tool."""
LOG = "export.log"
"""Next to it: the output of the export."""
RESULT = "exported.json"
"""Next to it: the outcome of the export."""


def main(argv: list[str]) -> int:
    """Export captures one after another, at low priority, each within its time."""
    timeout_s, *paths = argv
    os.nice(10)
    folders, outs, roots = (map(Path, paths[start::3]) for start in range(3))
    for number, (folder, out, root) in enumerate(zip(folders, outs, roots, strict=True)):
        signal.alarm(int(float(timeout_s)) + 30)  # our parent may be dead; end in any case
        if number:
            _speak_into(folder / LOG)
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)  # a helper that outlived its process may be at it
        if result_of(folder) is None:
            export(folder, out, root)
        os.close(lock)
    return 0


def _speak_into(path: Path) -> None:
    """Send all further output to the file *path*."""
    sys.stdout.flush()
    with path.open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


def result_of(folder: Path) -> dict[str, Any] | None:
    """Return the outcome of the export of *folder*; None: it has not ended."""
    try:
        result: dict[str, Any] = json.loads((folder / RESULT).read_bytes())
    except (OSError, ValueError):
        return None
    return result


def export(folder: Path, out: Path, root: Path) -> dict[str, Any]:
    """Let the tool export the data in *folder*; write the outcome there, and return it."""
    began = time.monotonic()
    artifacts: list[Artifact] = []
    error = ""
    try:
        from rlprof.session._artifacts import made_of  # a process that only waits needs none of it

        artifacts, error = made_of(folder, folder / RAW, out, root)
    except (Exception, SystemExit) as exc:  # code of a plugin: its message goes into the manifest
        error = f"{type(exc).__name__}: {exc}"
    result: dict[str, Any] = {
        "artifacts": [attrs.asdict(artifact) for artifact in artifacts],
        "seconds": round(time.monotonic() - began, 6),
        "error": error,
    }
    draft = folder / f"{RESULT}.tmp"
    draft.write_text(json.dumps(result))
    draft.rename(folder / RESULT)
    if is_finished(result):  # last: a kill in between loses nothing
        shutil.rmtree(folder / RAW, ignore_errors=True)
    return result


def is_finished(result: Mapping[str, Any]) -> bool:
    """Whether the raw data of *result* is no longer needed."""
    whole = all(artifact["status"] == "whole" for artifact in result["artifacts"])
    return whole and not result["error"]
