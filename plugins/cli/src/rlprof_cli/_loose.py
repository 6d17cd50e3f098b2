"""Traces of other profilers, found below a folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlprof.errors import RlprofError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUFFIXES = (".json", ".gz", ".trace", ".pftrace")
_DEEPEST = 8


def loose_files(path: Path, out: Path | None) -> list[Path]:
    """List the files to read if *path* is not a run; *out* is skipped.

    Raise if it is a folder without any.
    """
    if (path / "run.json").exists():
        return []
    if not path.is_dir():
        return [path] if path.is_file() and path.name != "run.json" else []
    found = sorted(_below(path, None if out is None else out.resolve(), _DEEPEST))
    if not found:
        raise RlprofError(
            f"{path}: no run.json here, and no file that ends in {', '.join(_SUFFIXES)}; name a "
            "run folder, <run_dir>/<run id>, or one with traces"
        )
    runs = {file.parent for file in found if file.name == "run.json"}
    return [] if any((folder / "manifest").is_dir() for folder in runs) else found


def _below(folder: Path, out: Path | None, levels: int) -> Iterator[Path]:
    """Yield the files in the order of their names; links and hidden files are skipped."""
    try:
        entries = list(os.scandir(folder))
    except OSError as exc:
        why = (exc.strerror or str(exc)).lower()
        print(f"rlprof: {folder}: left out: {why}", file=sys.stderr)
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "exports" and levels > 1 and Path(entry.path).resolve() != out:
                yield from _below(Path(entry.path), out, levels - 1)
        elif entry.name.endswith(_SUFFIXES) and entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
