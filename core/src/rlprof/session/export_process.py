"""The helper process of exports; it is called with SECONDS FOLDER OUT ROOT…

It reads the files of core and the tool in FOLDER, lets the tool make artifacts in OUT, and writes
`exported.json` into FOLDER. If the tool raised nothing and made every artifact whole, the raw data
is deleted. More FOLDER OUT ROOT may follow: they are exported one after another.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from pathlib import Path

from rlprof.session._exports import LOG, export, result_of


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
