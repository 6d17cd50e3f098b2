"""The files that belong to a run: only these are read on a node and written by the driver."""

from __future__ import annotations

import re

JOURNALS = ("manifest", "spans", "counters")
"""The folders of files that grow; each process has one file of its name in each."""
_STEP = re.compile(r"step_\d{6,19}", re.ASCII)


def why_not(path: object) -> str:
    """Say why *path*, relative to a run folder, cannot be a file of a run; empty if it can.

    Names come from other machines: none may lead out of the run folder, or to a driver's file.
    """
    if type(path) is not str or not path or "\0" in path:
        return "is no path"
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return "leads out of the run folder"
    if is_journal(path) or (len(parts) > 1 and _STEP.fullmatch(parts[0])):
        return ""
    return "is no file of a run"


def is_journal(path: str) -> bool:
    """Whether *path* is a manifest, spans or counters: such files may have grown."""
    folder, _, name = path.partition("/")
    return folder in JOURNALS and name.endswith(".jsonl") and "/" not in name


def is_part(folder: str) -> bool:
    """Whether *folder*, right below a run folder, holds files of the run."""
    return folder in JOURNALS or _STEP.fullmatch(folder) is not None


def order(path: str) -> tuple[int, str]:
    """Sort artifacts before the manifests that name them."""
    return {"counters": 1, "spans": 1, "manifest": 2}.get(path.partition("/")[0], 0), path
