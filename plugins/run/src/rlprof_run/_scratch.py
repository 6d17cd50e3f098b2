"""Whether the folder of raw data that a manifest names is ours.

A manifest lies in a folder that may be shared. The folder it names is read, says which code is
run, and is deleted. So it must be where core makes it, in the user's own folder.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from rlprof.errors import RunError
from rlprof.rundir import own_folder, scratch_name

if TYPE_CHECKING:
    from rlprof_run import CaptureResult, Run


def refusal(run: Run, capture: CaptureResult) -> str:
    """Return why the raw data of *capture* cannot be read here; empty if they can."""
    folder, writer = Path(capture.scratch), run.by_name[capture.process]
    try:
        os.lstat(folder / "capture.json")
    except (OSError, ValueError):  # a name no file can have
        if writer.here.host != socket.gethostname():
            return f"its raw data is on {writer.here.host}; run this there"
        return f"nothing is left in {folder}"
    target = [] if capture.target == writer.target else [capture.target.folder]  # an engine's
    life = f"{run.run_id}-{run.attempt}"
    place = capture.window.folder
    if folder.name == capture.tool:  # as rlprof 0.1 wrote it
        inside = Path(life, capture.process, *target, place, capture.tool)
    else:
        inside = Path(life, capture.process, *target, scratch_name(place, capture.tool))
    home = Path(*folder.parts[: -len(inside.parts)])
    is_ours = home / inside == folder and home.name == f"rlprof-{os.getuid()}"
    if not is_ours or not folder.is_absolute() or ".." in inside.parts:
        return f"{folder} is not the folder for raw data of this window; left alone"
    try:
        own_folder(home.parent)
    except RunError:
        return f"others may write to {home}, so the code it names may be theirs; left alone"
    return ""
