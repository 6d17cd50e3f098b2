"""nsys' shared memory on a host: one that is killed while it holds the lock there hangs all others.

Seen with 2022.4: each `nsys launch` then waits for ever, until the file is gone. It is made anew.
"""

from __future__ import annotations

import os
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 -- where nsys has it
_NAME = "NSys-*"


def free_what_nobody_uses(memory: Path | None = None) -> list[str]:
    """Remove nsys' shared memory where it is ours and no process has it; return what was removed.

    To be called where nsys hangs. Of others' processes only the names can be seen: while any is
    called nsys, all stays as it is.
    """
    freed = []
    for file in (memory or MEMORY).glob(_NAME):
        try:
            if file.is_file() and file.stat().st_uid == os.geteuid() and not _is_used(file):
                file.unlink()
                freed.append(str(file))
        except OSError:  # it went by itself
            continue
    return freed


def _is_used(file: Path) -> bool:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text(errors="replace").startswith("nsys"):
                if _state(folder) not in "ZX":
                    return True
            elif folder.stat().st_uid == os.geteuid() and str(file) in _maps(folder):
                return True
        except OSError:  # it has ended, or is one that nobody may look at: no program of a user's
            continue
    return False


def _maps(folder: Path) -> str:
    return (folder / "maps").read_text(errors="replace")


def _state(folder: Path) -> str:
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
