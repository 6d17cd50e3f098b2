"""Whether what a manifest says of a scratch folder may be believed.

A manifest lies in a folder that may be shared. What it names is read, says which code is run, and
is deleted; so it must be what core has made, where core makes it, and nobody else's to write to.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import as_json
from rlprof.session.export_process import is_done, read_capture

if TYPE_CHECKING:
    from rlprof.types import Target, Window
    from rlprof_run import CaptureResult, Run


def refusal(run: Run, capture: CaptureResult) -> str:
    """Say why the raw data of *capture* cannot be had here; empty if they can."""
    folder = Path(capture.scratch)
    host = run.by_name[capture.process].here.host
    try:
        os.lstat(folder / "capture.json")
    except (OSError, ValueError):  # a name no file can have
        if host != socket.gethostname():
            return f"its raw data lie on {host}; run this there"
        return f"nothing is left in {folder}"
    return _misplaced(folder, _inside(run, capture)) or _another(run, capture)


def _inside(run: Run, capture: CaptureResult) -> Path:
    """Name the folder core makes for *capture* below the user's own."""
    is_engine = capture.target != run.by_name[capture.process].target
    target = [capture.target.folder] if is_engine else []
    life = f"{run.run_id}-{run.attempt}"
    return Path(life, capture.process, *target, capture.window.folder, capture.tool)


def _misplaced(folder: Path, inside: Path) -> str:
    """Say why *folder* is not *inside* the user's own folder; empty if it is."""
    depth = len(inside.parts)
    above = [folder, *folder.parents][: depth + 1]
    is_ours = folder.is_absolute() and folder.parts[-depth:] == inside.parts
    if not is_ours or ".." in inside.parts or not re.fullmatch(r"rlprof-\d+", above[-1].name):
        return f"{folder} is not where rlprof keeps raw data of this window; left alone"
    is_reachable = True
    for path in reversed(above):
        try:
            found = path.lstat()
        except OSError as exc:  # it has just been removed
            return f"{path} cannot be looked at: {exc.strerror}"
        if not stat.S_ISDIR(found.st_mode):
            return f"{path} is a link, where rlprof makes a folder; left alone"
        if found.st_uid != os.getuid():
            return f"{path} belongs to another user; let that one do it"
        if is_reachable and found.st_mode & 0o022:
            return f"others may write to {path}, so the code it names may be theirs; left alone"
        is_reachable = is_reachable and bool(found.st_mode & 0o011)
    return ""


def _another(run: Run, capture: CaptureResult) -> str:
    """Say why what core noted in the folder of *capture* does not fit; empty if it does."""
    folder = Path(capture.scratch)
    file = folder / "capture.json"
    try:
        noted = read_capture(folder)
        was = _plain(noted.run_id, noted.target, noted.window, noted.tool)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as exc:
        return f"{file} cannot be read: {getattr(exc, 'strerror', None) or exc}"
    told = _plain(run.run_id, capture.target, capture.window, capture.tool)
    words = ("run", "target", "window", "tool")
    others = [word for word, one, other in zip(words, was, told, strict=True) if one != other]
    if others:
        return f"{file} tells of another {' and '.join(others)} than the manifest; left alone"
    if noted.plugin.startswith("__main__:") and not is_done(folder):
        return (
            f"{noted.plugin.partition(':')[2]} is a class of the script that ran, which no other "
            f"process can import; raw data are kept in {folder}"
        )
    return ""


def _plain(run_id: str, target: Target, window: Window, tool: str) -> list[Any]:
    """Return what identifies a capture as a manifest has it."""
    said = [run_id, attrs.asdict(target), attrs.asdict(window), tool]
    found: list[Any] = json.loads(as_json(said))
    return found
